"""A run on a file that is larger than its memory: measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="anonymous memory is read from /proc")
@pytest.mark.parametrize("minibatches", ["False", "None"], ids=["full iterations", "mini-batches"])
def test_a_large_file_needs_little_memory(tmp_path, minibatches):
    rows = np.random.default_rng(0).standard_normal((819_200, 64), dtype=np.float32)
    np.save(tmp_path / "rows.npy", rows)
    assert rows.nbytes == 200 * 2**20
    command = [sys.executable, "-c", LEARN_FROM_FILE, str(tmp_path / "rows.npy"), minibatches]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # Measured: 49 and 87 MiB, with the budget of 32 MiB for states; a group of mini-batches has 16 MiB, and
    # is copied. The signals are 200 MiB, and the states of an update more.
    assert used < 128 * 2**20


LEARN_FROM_FILE = """
import sys, threading
from pathlib import Path
import manifold_dl as mdl
from manifold_dl.engines import Threads

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

path, minibatches = sys.argv[1], eval(sys.argv[2])
options = {"coder": mdl.OMP(sparsity=5), "update": mdl.SimCO(mu=0.05), "rng": 0, "max_iter": 2}
warm = mdl.datasets.synthetic(64, 96, 3000, sparsity=5, rng=0).signals.astype("float32")
mdl.learn_dictionary(warm, 96, threads=1, **options)  # kernels are loaded
before, most, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.02):
        most[0] = max(most[0], anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
try:
    result = mdl.learn_dictionary(
        path, 96, engine=Threads(2, memory=2**25), minibatches=minibatches, **options
    )
finally:
    done.set()
    watcher.join()
print(most[0] - before)
"""
