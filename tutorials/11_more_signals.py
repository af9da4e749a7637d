"""
More signals than you thought
=============================

Pictures bring patches by the hundred thousand. What does one more signal cost, in seconds and in bytes?
Which parts of the work grow with the number of signals, and which do not? How can several threads share it
and still give the same result to the last bit? And what if the signals do not fit in memory at all?

You need NumPy and the dictionary update (:ref:`sphx_glr_tutorials_03_dictionary_update.py`); line searches
are explained in :ref:`sphx_glr_tutorials_02_line_search.py`.
"""

# %%

import threading
import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

import manifold_dl as mdl
from manifold_dl.engines import BlockMap, Threads
from manifold_dl.engines.protocol import partition
from manifold_dl.learning.minibatch import OnlineState, online_step

plt.style.use(mdl.plotting.STYLE)
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#7A7A7A"

# %%
# What grows with n
# -----------------
# The objective of the update is a sum over the signals, and each of them solves a little least-squares
# problem with its :math:`S` atoms. So we expect seconds and bytes in proportion to :math:`n`. Let us
# measure three things that optimizers evaluate:
#
# * the value with its gradient,
# * a product with the Hessian,
# * one probe :math:`\varphi(t)` of a line search.
#
# We take processor time on one thread, the best of a few attempts, and for memory what Python's
# ``tracemalloc`` sees.

d, S = 64, 4


def setting(m, n):
    """A problem with n signals of length m, a dictionary and a direction to move it in."""
    _, X, Y = mdl.datasets.synthetic(m, d, n, sparsity=S, snr_db=20, rng=0)
    problem = mdl.update_problem(Y, X.astype(bool), mu=0.01, threads=1)
    D = problem.manifold.random_point(rng=1)
    return problem, D, problem.manifold.random_tangent_vector(D, rng=2)


def seconds(task, attempts=3):
    """Processor time of task(1), task(2), ...: the shortest, for the others were disturbed."""
    times = []
    for attempt in range(1, attempts + 1):
        begin = time.process_time()
        task(attempt)
        times.append(time.process_time() - begin)
    return min(times)


def bytes_kept(task):
    """What is still there after the task has been done."""
    tracemalloc.start()
    result = task()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept, result


# %%
# The problem caches what it computed at the last dictionaries, so that nothing is computed twice. To time an
# evaluation we have to move the dictionary a little each time. A line search computes its inner products at
# the first probe, so we include one probe in its memory.


def begin_search(problem, D, U):
    phi = problem.restrict(D, U)
    phi(0.005)
    return phi


def measure(m, n):
    problem, D, U = setting(m, n)
    problem.cost(-D)  # a first evaluation, to warm up
    kept, _ = bytes_kept(lambda: problem.cost(D))
    held, phi = bytes_kept(lambda: begin_search(problem, D, U))
    return {
        "value and gradient": seconds(lambda k: problem.cost(problem.manifold.exp(D, 1e-3 * k * U))),
        "Hessian product": seconds(lambda k: problem.euclidean_hessian(D, k * U)),
        "probe φ(t)": seconds(lambda k: phi(0.01 * k), attempts=10),
        "bytes after an evaluation": kept,
        "bytes of a line search": held,
        "bytes of the signals": 8 * m * n,
    }


numbers = [1_000, 3_000, 10_000, 30_000, 100_000]
by_number = [measure(32, n) for n in numbers]

# %%
# Left the seconds, right the bytes; both axes are logarithmic, and the grey line has slope 1: ten times the
# signals, ten times the cost.

looks = {
    "value and gradient": ("o-", BLUE),
    "Hessian product": ("s--", VERMILION),
    "probe φ(t)": ("^-.", GREEN),
    "bytes of the signals": ("o-", GREY),
    "bytes after an evaluation": ("s--", BLUE),
    "bytes of a line search": ("^-.", GREEN),
}


def draw(axes, x, rows):
    for name, (look, colour) in looks.items():
        ax, unit = (axes[1], 1e6) if name.startswith("bytes") else (axes[0], 1e-3)
        ax.loglog(
            x, [row[name] / unit for row in rows], look, color=colour, label=name.removeprefix("bytes ")
        )
    axes[0].set(ylabel="milliseconds", title="Time")
    axes[1].set(ylabel="megabytes", title="Memory")
    for ax in axes:
        ax.legend()


figure, axes = plt.subplots(1, 2, figsize=(9.6, 4))
draw(axes, numbers, by_number)
for ax, name, unit in ((axes[0], "probe φ(t)", 1e-3), (axes[1], "bytes of a line search", 1e6)):
    end = by_number[-1][name] / unit / 3
    ax.plot(numbers, end * np.array(numbers) / numbers[-1], color=GREY, lw=4, alpha=0.3)
    ax.set_xlabel("number of signals n")

last = by_number[-1]
print(f"bytes for each signal: {last['bytes of the signals'] / numbers[-1]:.0f} it has itself,", end=" ")
print(f"{last['bytes after an evaluation'] / numbers[-1]:.0f} after an evaluation")

# %%
# All of it is linear, once n is large enough for Python itself not to matter. And the memory is moderate:
# besides the signals, an evaluation keeps for each signal its :math:`S` codes and a small triangular factor
# of its support, for Hessian products. A line search keeps some more, but that again depends on :math:`S`
# and not on :math:`m`.
#
# A probe is cheap: several of them cost as much as one evaluation. Why is that so?
#
# A probe does not depend on m
# ----------------------------
# Along a geodesic every atom turns on its great circle,
# :math:`d_i(t) = d_i \cos\theta_i t + u_i \sin\theta_i t`. The least-squares problem of a signal needs the
# inner products of its atoms with each other and with the signal. These are combinations of inner products
# *at the start*, with cosines and sines for weights:
#
# .. math:: d_i(t)^T y = \cos(\theta_i t)\; d_i^T y + \sin(\theta_i t)\; u_i^T y .
#
# So they are computed once per search, and after that no vector of length :math:`m` is read again.
# Let us vary :math:`m` with the number of signals fixed:

lengths = [16, 32, 64, 128, 256]
by_length = [measure(m, 10_000) for m in lengths]

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4))
draw(axes, lengths, by_length)
for ax in axes:
    ax.set(xlabel="length of the signals m", xticks=lengths, xticklabels=lengths)
    ax.minorticks_off()

# %%
# The signals get longer, and the evaluation takes longer; the probe does not, and what it holds in memory
# grows by the atoms alone. Once it is set up, a line search over signals of length 256 costs what it costs
# at 16.
#
# Threads
# -------
# A sum over signals can be divided: cut the signals into blocks, compute the sum of each block, and add the
# results. In the package, such a sum is a :class:`~manifold_dl.engines.BlockMap`, a function of one block.
# An *engine* runs it on all blocks and adds; :class:`~manifold_dl.engines.Threads` is the engine of one
# machine. The function returns two things: a *partial result*, which is added over all blocks, and a *state*,
# which stays beside its block for later functions.
#
# Let us code the signals with :class:`~manifold_dl.OMP` and sum up the squared error. As the state of a block
# we keep which thread computed it, and when:

m, n = 32, 32_768
D_true, X_true, Y = mdl.datasets.synthetic(m, d, n, sparsity=S, snr_db=20, rng=0)
rows = np.ascontiguousarray(Y.T)
blocks = [rows[block] for block in partition(n)]
print(f"{n} signals make {len(blocks)} blocks of {len(blocks[0])}")


def squared_error(block, dictionary):
    """The error of one block, and by which thread and when it was computed."""
    begin = time.perf_counter()
    codes = mdl.OMP(sparsity=S).encode(block.T, dictionary, threads=1)
    error = float(np.sum((block.T - dictionary @ codes) ** 2))
    return error, (threading.current_thread().name, begin, time.perf_counter())


def run(engine):
    """The error of all signals, and the states of the blocks."""
    errors = BlockMap(squared_error, parents=(engine.open(blocks),), common=(D_true,))
    (total,) = engine.total(errors)
    return total, engine.states(errors)


totals = set()
figure, axes = plt.subplots(2, 1, figsize=(8, 3.4), sharex=True, height_ratios=[1, 2])
for ax, engine in zip(axes, (Threads(1), Threads(2)), strict=True):
    runs = [run(engine) for _ in range(6)]
    totals |= {total for total, _ in runs}
    duration = lambda times: max(end for _, _, end in times) - times[0][1]
    times = min((states for _, states in runs), key=duration)  # the least disturbed run
    start = times[0][1]
    workers = sorted({name for name, _, _ in times})
    for number, (name, begin, end) in enumerate(times):
        place, colour = workers.index(name), plt.colormaps["viridis"](0.25 + 0.09 * number)
        ax.barh(place, 1e3 * (end - begin), left=1e3 * (begin - start), color=colour, edgecolor="white")
        ink = "white" if number < 4 else "black"
        ax.text(5e2 * (begin + end - 2 * start), place, number, ha="center", va="center", color=ink)
    ax.set_yticks(range(len(workers)), [f"thread {k + 1}" for k in range(len(workers))])
    ax.invert_yaxis()
    ax.grid(False)
axes[0].set_title("Eight blocks, one thread and two")
axes[1].set_xlabel("milliseconds")
print(f"12 runs with one thread and with two: {len(totals)} different sum of squared errors")

# %%
# Which thread computes which block is a matter of chance, and on a busy machine the picture is a different
# one every time. The sum is not: all runs gave the same number, to the last bit. That is not self-evident.
#
# The same bits
# -------------
# Adding floating-point numbers in another order gives another result. Let us add up the gradients of eight
# blocks in all sorts of orders:

few = 16_384
support = X_true[:, :few].astype(bool)
pieces = partition(few)
D = mdl.manifolds.Spheres(m, d).random_point(rng=1)
parts = [
    mdl.update_problem(Y[:, piece], support[:, piece], mu=0.01, threads=1).euclidean_gradient(D)
    for piece in pieces
]


def add(order):
    """One after the other."""
    total = np.zeros((m, d))
    for k in order:
        total += parts[k]
    return total


def add_pairwise(terms):
    """((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))."""
    while len(terms) > 1:
        terms = [left + right for left, right in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


rng = np.random.default_rng(0)
shuffled = [add(rng.permutation(8)) for _ in range(20)]
different = {gradient.tobytes() for gradient in shuffled}
size = max(np.abs(gradient - shuffled[0]).max() for gradient in shuffled) / np.abs(shuffled[0]).max()
print(f"20 orders, {len(different)} different gradients; they differ by {size:.0e} of the largest entry")

# %%
# A tiny difference. But sparse coding makes yes-or-no decisions, and a tiny difference may flip one; after
# fifty iterations you have another dictionary, and you cannot repeat your own experiment. So the package
# keeps two rules. The size of a block depends on the number of signals and never on that of the threads.
# And partial results are added *over a fixed tree*: pairs of neighbouring blocks, then pairs of these pairs,
# whichever block is computed first. (Why a tree, and not one block after the other? Because a machine that
# has the blocks 4 to 7 can add them by itself and send one array, and still the bits are the same.) Then the
# number of threads cannot matter:

gradients = {
    threads: mdl.update_problem(Y[:, :few], support, mu=0.01, threads=threads).euclidean_gradient(D)
    for threads in (1, 2, 3, 5)
}
for threads, gradient in gradients.items():
    same = np.array_equal(gradient, add_pairwise(parts))
    print(f"{threads} threads: same bits as our own pairwise sum: {same}")

# %%
# That holds for the whole of learning, sparse coding included:

learned = [
    mdl.learn_dictionary(
        Y[:, :few], d, coder=mdl.OMP(sparsity=S), max_iter=4, rng=0, threads=threads
    ).dictionary
    for threads in (1, 2)
]
print("a dictionary learned with one thread and with two: the same bits:", np.array_equal(*learned))

# %%
# More than fits in memory
# ------------------------
# Sometimes the signals never end: a microphone, a folder with a million photographs. Then they come in
# batches, which are looked at once and thrown away. The naive way is to update the dictionary on each batch
# as if it were all there is. It cannot work for long: fifty signals say little about 24 atoms, and what the
# next fifty say overrules it.
#
# :func:`manifold_dl.learning.minibatch.online_step` keeps one number per atom, the *energy* of all its codes
# so far. The update computes a new position, and the atom moves there only by the fraction that the batch has
# in all its energy. Early batches move it far, late ones a little.


def stream(true, batches, size, seed):
    """Batches of noisy signals, one after the other; no two are ever in memory together."""
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        codes = mdl.datasets.synthetic(*true.shape, size, sparsity=3, rng=rng).codes
        yield true @ codes + 0.05 * rng.standard_normal((len(true), size))


spheres = mdl.manifolds.Spheres(16, 24)
true, naive = spheres.random_point(rng=0), spheres.random_point(rng=5)
coder, update = mdl.OMP(sparsity=3), mdl.SimCO(mu=0.1, threads=1)
online, state = naive, OnlineState(np.zeros(24))
found = {"each batch alone": [], "weighted by energy": []}
for i, batch in enumerate(stream(true, 160, 50, seed=1)):
    naive, _ = update(batch, naive, coder.encode(batch, naive), iteration=i)
    online, state, _ = online_step(batch, online, state, coder, update, iteration=i)
    found["each batch alone"].append(mdl.metrics.recovery(naive, true))
    found["weighted by energy"].append(mdl.metrics.recovery(online, true))

figure, ax = plt.subplots(figsize=(7, 3.8))
for (name, fraction), colour in zip(found.items(), (VERMILION, BLUE), strict=True):
    ax.plot(50 * np.arange(1, len(fraction) + 1), fraction, color=colour, label=name)
ax.set(
    xlabel="signals seen", ylabel="fraction of atoms found", title="A stream in batches of 50", ylim=(0, 1)
)
ax.legend(loc="center right")
print(f"what is kept between batches: {online.nbytes + state.energy.nbytes} bytes")

# %%
# Eight thousand signals have gone by, and all that was kept between two batches is the dictionary and one
# number for each atom. In scikit-learn's manner the same thing is
# ``partial_fit`` of :class:`~manifold_dl.ManifoldDictionaryLearning`.

# %%
# Exercise
# --------
# Halve the memory: give the signals in single precision (``float32``). What becomes of the type of the
# results, of the bytes, and of the gradient's digits? Do different numbers of threads still give the same
# bits?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# Results have the type of the data, and what grows with n is half as large. Single precision has about
# seven digits. The gradient keeps six of them, because the sums that decide are formed in double precision.
# And the rules about blocks do not depend on the type, so the bits are the same for any number of threads.

singles = [
    mdl.update_problem(Y[:, :few].astype(np.float32), support, mu=0.01, threads=threads).euclidean_gradient(D)
    for threads in (1, 2)
]
single, double = singles[0], gradients[1]
digits = np.abs(single - double).max() / np.abs(double).max()
print(f"{single.dtype}: the gradient differs by {digits:.0e} of its largest entry")
print("same bits with one thread and with two:", np.array_equal(*singles))

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * Time and memory of an update grow in proportion to the number of signals, and the memory by less than the
#   signals take themselves.
# * A probe of a line search uses neither the signals nor their length, only inner products that were computed
#   once.
# * Blocks whose size does not depend on the threads, added over a fixed tree, give the same bits for any
#   number of threads.
# * Learning from a stream needs one number per atom: the energy of its codes so far.

kept = [row["bytes after an evaluation"] for row in by_number]
assert kept[-1] < 120 * kept[0]  # a hundred times the signals: in proportion, and no more
assert kept[-1] < last["bytes of the signals"]  # less than the signals themselves take
growth = {name: by_length[-1][name] - by_length[0][name] for name in by_length[0]}
assert (
    growth["bytes of a line search"] < 0.05 * growth["bytes of the signals"]
)  # a probe does not depend on m
assert len(different) > 1  # the order of addition matters
assert len(totals) == 1  # one thread and two, twelve runs: the same bits
assert all(np.array_equal(gradient, add_pairwise(parts)) for gradient in gradients.values())  # a fixed tree
assert np.array_equal(*learned)  # a dictionary does not depend on the number of threads
assert found["weighted by energy"][-1] > found["each batch alone"][-1] + 0.4  # which a stream needs
assert (
    single.dtype == np.float32 and digits < 1e-5 and np.array_equal(*singles)
)  # single precision works, too

plt.show()
