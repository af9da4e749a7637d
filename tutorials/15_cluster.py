"""
A cluster, and what happens when it breaks
==========================================

A billion patches do not fit into one machine. The objective is a sum over signals, so a cluster can compute
it: every worker has some blocks, and only sums are sent. Is that still the same algorithm? What is sent, and
how often? And is the result still right if a worker is killed in the middle?

You need :ref:`sphx_glr_tutorials_11_more_signals.py`, which explains blocks and the tree of sums. The
cluster is made of processes on this machine; a real one needs nothing but another address.
"""

# %%

import os
import signal
import time

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster

import manifold_dl as mdl
from manifold_dl.engines import BlockMap, Dask

plt.style.use(mdl.plotting.STYLE)
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#7A7A7A"

# %%
# Two processes
# -------------
# ``SubprocessCluster`` starts a scheduler and workers as new processes, by the command line of Dask.
# ``LocalCluster`` is more usual; but its processes import the script that makes it once more, so it needs a
# script with ``if __name__ == "__main__"``. On a real cluster they are started by its own tools, and
# ``Client("tcp://address:8786")`` is all that changes.


options = {"worker_kwargs": {"nthreads": 1}, "scheduler_kwargs": {"dashboard": False}}
cluster = SubprocessCluster(n_workers=2, silence_logs=50, **options)
client = Client(cluster)
engine = Dask(client)

# %%
# The signals are a Dask array, chunked along the signals. Here it is made from an array in memory; usually
# it comes from files that the workers can read, and is never in the memory of this process.


truth, _, Y = mdl.datasets.synthetic(16, 32, 20_000, sparsity=3, snr_db=20, rng=0)
signals = da.from_array(Y, chunks=(16, 5_000))
settings = {"coder": mdl.OMP(sparsity=3), "update": mdl.SimCO(mu=0.05), "max_iter": 8, "rng": 0, "tol": 0}

here = mdl.learn_dictionary(Y, 32, threads=1, **settings)
there = mdl.learn_dictionary(signals, 32, engine=engine, **settings)
print("same bits on the cluster:", np.array_equal(here.dictionary, there.dictionary))
print("its codes:", there.codes)

# %%
# The dictionary is a NumPy array, to the last bit that of one thread. The codes are lazy: with a billion
# signals they do not fit into this process. ``there.codes.compute()`` computes them, and brings them here.
#
# Rounds
# ------
# One function of a block, run on all blocks, with its sums added: that is a *round*. Every worker gets one
# task, adds the sums of its own blocks, and sends one array. How many rounds does an outer iteration take,
# and how long does a round take that computes next to nothing?


def count(block):
    """The number of signals of a block."""
    return len(block), None


blocks = engine.open([np.ones((4, 2))] * 8)
begin = time.perf_counter()
for _ in range(20):
    (total,) = engine.total(BlockMap(count, parents=(blocks,)))
latency = (time.perf_counter() - begin) / 20
before = engine.rounds()
mdl.learn_dictionary(signals, 32, engine=engine, **settings | {"max_iter": 4})
middle = engine.rounds()
mdl.learn_dictionary(signals, 32, engine=engine, **settings)
per_iteration = ((engine.rounds() - middle) - (middle - before)) / 4
print(
    f"{total} rows counted; {1e3 * latency:.0f} ms for a round, {per_iteration:.1f} rounds for an iteration"
)

# %%
# An iteration codes the signals, then makes five conjugate-gradient steps: each is an evaluation and one or
# two probes of a line search. Sparse coding joins the first evaluation, and starting a geodesic joins the
# first probe. So an iteration cannot be faster than some rounds, however many workers there are:
#
# .. math:: T \approx \frac{a\, n}{W} + R\, L
#
# with a microseconds for each signal, W workers, R rounds and the latency L.

a = 4e-6
workers = np.geomspace(1, 10_000, 50)
figure, ax = plt.subplots(figsize=(7, 3.8))
for n, look in ((1e6, ":"), (1e8, "--"), (1e9, "-")):
    ax.loglog(workers, a * n / workers + per_iteration * latency, look, color=BLUE, label=f"n = {n:.0e}")
ax.axhline(per_iteration * latency, color=GREY, lw=4, alpha=0.4, label="latency alone")
ax.set(xlabel="workers", ylabel="seconds per iteration", title="What the model predicts")
ax.legend()

# %%
# Small problems do not need a cluster; a million patches are a matter of seconds on one machine.
#
# A worker is killed
# ------------------
# Machines fail. Let us kill one of the two processes after the second iteration:

victim = next(iter(client.run(os.getpid).values()))


def kill_once(step):
    """A callback: kill a worker, once."""
    if step.iteration == 1:
        os.kill(victim, signal.SIGKILL)


after_kill = mdl.learn_dictionary(signals, 32, engine=engine, **settings | {"callbacks": [kill_once]})
print("same bits after a worker was killed:", np.array_equal(after_kill.dictionary, here.dictionary))

# %%
# What the lost worker had computed (codes, factorisations) was only a cache. The signals of its blocks were
# sent to the other worker, which computed it again: the same functions of the same numbers, so the same bits.

figure, ax = plt.subplots(figsize=(7, 3.6))
ax.semilogy(here.history.loss, "o-", color=GREY, ms=9, label="one thread")
ax.semilogy(after_kill.history.loss, ".--", color=VERMILION, label="two workers, one killed")
ax.axvline(1.5, color=VERMILION, lw=1, ls=":")
ax.text(1.55, here.history.loss[0], "killed", color=VERMILION, va="top")
ax.set(xlabel="iteration", ylabel="loss", title="The loss is the same")
ax.legend()

# %%
# Exercise
# --------
# K-SVD updates one atom after the other. How many rounds would one of its sweeps take for 256 atoms? What
# does the package do?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# At least one round for each atom, and with 20 ms for each that is five seconds in which nothing is
# computed. So it is refused, and the message says what to use instead:

try:
    mdl.learn_dictionary(signals, 32, engine=engine, **settings | {"update": mdl.KSVD()})
except ValueError as error:
    refusal = str(error)
print(refusal)

# %%
# .. raw:: html
#
#    </details>

client.close()
cluster.close()

# %%
# What we have seen
# -----------------
# * The distributed run is the same algorithm: the same sums over the same tree, to the last bit.
# * What it costs besides computing is rounds: some fourteen for an iteration, each with its latency.
# * States are a cache. Losing a worker costs time and changes nothing else.

assert np.array_equal(here.dictionary, there.dictionary)  # the same algorithm, to the last bit
assert np.array_equal(here.dictionary, after_kill.dictionary)  # a lost worker changes nothing
assert np.array_equal(here.history.loss, after_kill.history.loss)  # in no iteration
assert 8 <= per_iteration <= 16 and total == 32  # some fourteen rounds for an iteration
assert "SimCO" in refusal  # K-SVD is refused with a sentence

plt.show()
