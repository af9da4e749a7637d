"""Scaling: the same learning on threads, on a Dask cluster of this machine, and from large files.

    python benchmarks/scaling.py bits     # the same bits everywhere: 65,000 patches of 8×8, 10 iterations
    python benchmarks/scaling.py cost     # CPU per signal from 1e4 to 1e6 patches, ms per round, two workers
    python benchmarks/scaling.py latency  # the latencies and rates of `cost` once more
    python benchmarks/scaling.py memory   # 5 GB of float32 patches from a file (--gigabytes 20 for more)
    python benchmarks/scaling.py model    # the cost model with the constants of `cost`, and the plot

Each part prints what it found and stores it in benchmarks/results/scaling.json, or in another file that
--results names. The patches have edges of
random places, angles and widths, and noise, so that no two are the same.
"""

import argparse
import json
import os
import resource
import stat
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads

RESULTS = Path(__file__).parent / "results" / "scaling.json"
M, ATOMS, SPARSITY = 64, 128, 5


def patches(n, dtype=np.float64, seed=0):
    """n patches of 8×8 in rows: edges of random places, angles and widths, with noise, without mean."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(8, dtype=dtype), np.arange(8, dtype=dtype))
    rows = np.empty((n, M), dtype)
    for first in range(0, n, 65_536):
        k = min(65_536, n - first)
        bounds = [(0, 2 * np.pi), (-4, 4), (0.3, 3)]
        angle, place, width = (rng.uniform(*bound, k).astype(dtype) for bound in bounds)
        along = np.cos(angle)[:, None] * (x.ravel() - 3.5) + np.sin(angle)[:, None] * (y.ravel() - 3.5)
        contrast = rng.gamma(2, 20, k).astype(dtype)
        values = np.tanh((along - place[:, None]) / width[:, None]) * contrast[:, None]
        values += 4 * rng.standard_normal((k, M), dtype)
        rows[first : first + k] = values - values.mean(axis=1, keepdims=True)
    return rows


def options(max_iter, minibatches=False):
    """OMP and regularized SimCO: full iterations, unless mini-batches are asked for."""
    update, coder = mdl.SimCO(mu=0.05), mdl.OMP(sparsity=SPARSITY)
    fixed = {"coder": coder, "update": update, "rng": 0, "tol": 0, "replace": None}
    return fixed | {"max_iter": max_iter, "minibatches": minibatches}


def cluster(n_workers):
    """A client of processes with one thread each on this machine."""
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"))


def store(part, found):
    """Print and keep the numbers of one part."""
    print(json.dumps(found, indent=2))
    RESULTS.parent.mkdir(exist_ok=True)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(known | {part: found}, indent=2) + "\n")


def same(found, expected):
    """Whether two results have the same bits."""
    codes = found.codes if hasattr(found.codes, "indptr") else found.codes.compute()
    pairs = [(getattr(codes, p), getattr(expected.codes, p)) for p in ("data", "indices", "indptr")]
    return all(np.array_equal(a, b) for a, b in [*pairs, (found.dictionary, expected.dictionary)])


def bits(n, max_iter):
    """The same bits on every engine."""
    import dask.array as da

    found = {}
    kinds = [(np.float64, False), (np.float32, False), (np.float64, None)]  # None: mini-batches first
    for dtype, minibatches in kinds:
        rows, chosen = patches(n, dtype), options(max_iter, minibatches)
        name = np.dtype(dtype).name + (", mini-batches" if minibatches is None else "")
        expected = mdl.learn_dictionary(rows.T, ATOMS, threads=1, **chosen)
        result = mdl.learn_dictionary(rows.T, ATOMS, threads=2, **chosen)
        found[f"{name}, Threads(2)"] = same(result, expected)
        for workers in (1, 2, 4):
            client = cluster(workers)
            columns = da.from_array(rows.T, chunks=(M, 20_000))
            result = mdl.learn_dictionary(columns, ATOMS, engine=Dask(client), **chosen)
            found[f"{name}, Dask with {workers} workers"] = same(result, expected)
            client.shutdown()
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "rows.npy", rows)
            engine = Threads(2, memory=0)
            result = mdl.learn_dictionary(Path(folder) / "rows.npy", ATOMS, engine=engine, **chosen)
            found[f"{name}, file"] = same(result, expected)
    store("bits", {"signals": n, "iterations": max_iter, "same bits": found})
    if wrong := [name for name, is_same in found.items() if not is_same]:
        raise SystemExit(f"other bits than one thread: {'; '.join(wrong)}")


def cpu_of_children(client):
    """CPU seconds of the workers until now."""
    return sum(client.run(_cpu).values())


def _cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def cost(sizes):
    """CPU and time per signal and iteration on two threads and on two workers, and milliseconds per round."""
    import dask.array as da

    client, found = cluster(2), []
    engine = Dask(client)
    for on in (Threads(2), engine):  # every process loads or compiles its kernels
        mdl.learn_dictionary(patches(20_000).T, ATOMS, engine=on, **options(2))
    for n in sizes:
        rows = patches(n)
        columns = da.from_array(rows.T, chunks=(M, 65_536))
        runs = {}
        for name in ("threads", "dask"):
            signals, on = (rows.T, Threads(2)) if name == "threads" else (columns, engine)
            measured, more = [], 3 if n > 300_000 else 30
            for max_iter in (1, 1 + more):  # the difference has no loading and starting in it
                begin, cpu, count = time.perf_counter(), _cpu() + cpu_of_children(client), engine.rounds()
                mdl.learn_dictionary(signals, ATOMS, engine=on, **options(max_iter))
                used = _cpu() + cpu_of_children(client) - cpu
                measured.append((time.perf_counter() - begin, used, engine.rounds() - count))
            runs[name] = [(after - before) / more for before, after in zip(*measured, strict=True)]
        (t_time, t_cpu, _), (d_time, d_cpu, rounds) = runs["threads"], runs["dask"]
        found.append(
            {
                "signals": n,
                "threads: µs CPU per signal and iteration": round(1e6 * t_cpu / n, 3),
                "dask: µs CPU per signal and iteration": round(1e6 * d_cpu / n, 3),
                "CPU of dask / threads": round(d_cpu / t_cpu, 3),
                "seconds per iteration, threads": round(t_time, 3),
                "seconds per iteration, dask": round(d_time, 3),
                "rounds per iteration": round(rounds, 2),
            }
        )
        print(found[-1])
    store("cost", {"sizes": found, **latencies(client, engine)})
    client.shutdown()


def latencies(client, engine):
    """Milliseconds of a round that computes next to nothing, and of one more task in it; rates of sending."""
    from distributed import wait

    rounds = 1e3 * empty_round(engine)
    to_workers, to_driver = rates(engine, 1e-3 * rounds)
    begin = time.perf_counter()
    wait([client.submit(abs, -number, key=f"task-{begin}-{number}") for number in range(500)])
    return {
        "ms per empty round": round(rounds, 2),
        "ms per task": round(2 * (time.perf_counter() - begin), 3),
        "GB/s to the workers": round(to_workers / 1e9, 2),
        "GB/s to the driver": round(to_driver / 1e9, 2),
    }


def empty_round(engine, repeats=50):
    """Seconds of a round that computes next to nothing."""
    from manifold_dl.engines import BlockMap
    from manifold_dl.engines.sources import squared_norm_block

    blocks = engine.open([np.ones((8, 2))] * 8)
    engine.total(BlockMap(squared_norm_block, (blocks,)))
    begin = time.perf_counter()
    for _ in range(repeats):
        engine.total(BlockMap(squared_norm_block, (blocks,)))
    return (time.perf_counter() - begin) / repeats


def rates(engine, latency, size=2**25, repeats=5):
    """Bytes per second of rounds that send an array to each worker, and of rounds that bring one from each.

    With packing, copying and all that Dask does to them, over the loopback device.
    """
    from manifold_dl.engines import BlockMap

    workers = len(engine.workers())
    blocks, found = engine.open([size // 8] * workers), []
    for function, common in [(take_array, (np.ones(size // 8),)), (make_array, ())]:
        seconds = []
        for _ in range(repeats):
            begin = time.perf_counter()
            engine.total(BlockMap(function, (blocks,), common))
            seconds.append(time.perf_counter() - begin - latency)
        found.append(workers * size / np.median(seconds))
    return found


def take_array(length, array):
    """A function of a block that is sent an array."""
    return float(array[0]), None


def make_array(length):
    """A function of a block whose sum is an array."""
    return (np.ones(length), None)


def memory(gigabytes, folder, max_iter):
    """The largest anonymous memory while a dictionary is learned from a file on one thread."""
    n = int(gigabytes * 2**30) // (4 * M)
    path = Path(folder or tempfile.gettempdir()) / "scaling_rows.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, M))
    for number, first in enumerate(range(0, n, 2**20)):  # full, no holes
        rows[first : first + 2**20] = patches(min(2**20, n - first), np.float32, seed=number)
    rows.flush()
    del rows
    largest, scratch, done = [0], [0], threading.Event()

    def watch():
        while not done.wait(0.2):
            largest[0], scratch[0] = max(largest[0], anonymous()), max(scratch[0], in_scratch_files())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        begin, cpu = time.perf_counter(), _cpu()
        result = mdl.learn_dictionary(path, ATOMS, engine=Threads(1, memory=2**28), **options(max_iter))
        seconds, used = time.perf_counter() - begin, _cpu() - cpu
        result.codes.save(path.with_suffix(".codes"))
    finally:
        done.set()
        watcher.join()
        path.unlink()
    store(
        f"memory, {gigabytes:g} GB",
        {
            "signals": n,
            "iterations": max_iter,
            "largest anonymous memory, MB": round(largest[0] / 2**20),
            "largest scratch files, GB": round(scratch[0] / 2**30, 1),
            "seconds": round(seconds, 1),
            "µs CPU per signal and iteration": round(1e6 * used / n / max_iter, 2),
        },
    )


def anonymous():
    """Bytes of this process that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1024 * int(line.split()[1])
    return 0


def in_scratch_files():
    """Bytes of the files that this process has open and that have no name."""
    size = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found = os.stat(entry)
        except OSError:  # it was closed just now
            continue
        size += 512 * found.st_blocks if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 else 0
    return size


def model():
    """The cost model T = a n/W + R (L + c W) + bytes/B with the stored constants, and its plot."""
    import matplotlib.pyplot as plt

    known = json.loads(RESULTS.read_text())["cost"]
    last = known["sizes"][-1]
    a, R = 1e-6 * last["dask: µs CPU per signal and iteration"], last["rounds per iteration"]
    L, c = 1e-3 * known["ms per empty round"], 1e-3 * known["ms per task"]
    B = 1e9 * known["GB/s to the driver"]
    gradient, gram = 8 * M * ATOMS, 8 * ATOMS**2
    per_worker = 6 * gradient + 5 * gram  # six fits, five searches
    found = {}
    for n, workers in [(1e9, 64), (1e9, 1000)]:
        compute = a * n / workers
        fan_in = int(np.ceil(np.sqrt(workers)))
        direct, added = workers * per_worker / B, 2 * fan_in * per_worker / B
        found[f"{n:.0e} signals, {workers} workers"] = {
            "compute, s": round(compute, 1),
            "latency of rounds, s": round(R * L, 2),
            "tasks of the scheduler, s": round(R * c * workers, 2),
            "gather without adding on the workers, s": round(direct, 2),
            "gather with adding on the workers, s": round(added, 2),
        }
    numbers = {"a, µs": 1e6 * a, "R": R, "L, ms": 1e3 * L, "c, ms": 1e3 * c, "B, GB/s": B / 1e9}
    constants = {name: round(number, 3) for name, number in numbers.items()}
    store("model", constants | {"predictions": found})
    sizes = [size["signals"] for size in known["sizes"]]
    fig, ax = plt.subplots(figsize=(6, 4))
    for name, label in [("threads", "Threads(2)"), ("dask", "Dask, two workers")]:
        ax.loglog(sizes, [s[f"seconds per iteration, {name}"] for s in known["sizes"]], "o-", label=label)
    ax.loglog(sizes, [a * n / 2 + R * L for n in sizes], "k--", label="model a n/W + R L")
    ax.set(xlabel="signals (patches of 8×8)", ylabel="seconds per outer iteration")
    ax.legend(frameon=False)
    fig.tight_layout()
    fig.savefig(RESULTS.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["bits", "cost", "latency", "memory", "model"])
    parser.add_argument("--signals", type=int, default=65_000)
    parser.add_argument("--iterations", type=int, default=None)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e4, 1e5, 1e6])
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    RESULTS = chosen.results
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if chosen.part == "bits":
        bits(chosen.signals, chosen.iterations or 10)
    elif chosen.part == "cost":
        cost([int(size) for size in chosen.sizes])
    elif chosen.part == "latency":
        client = cluster(2)
        known = json.loads(RESULTS.read_text())["cost"]
        store("cost", known | latencies(client, Dask(client)))
        client.shutdown()
    elif chosen.part == "memory":
        memory(chosen.gigabytes, chosen.folder, chosen.iterations or 1)
    else:
        model()
