"""Sparse coding against SPAMS, scikit-learn and the bare product DᵀY, on real and on synthetic signals.

    python benchmarks/coding.py            # one thread, and two
    python benchmarks/coding.py --quick    # a tenth of the signals

Every row is measured in the same run: each method is timed several times in turn, and the smallest time
counts. Needs the `bench` extra (spams-bin). One thread means one: BLAS is limited for everybody.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse
import spams
from sklearn.datasets import load_sample_image
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import orthogonal_mp_gram
from threadpoolctl import threadpool_limits

from manifold_dl import coders

M, D, S, N = 64, 256, 5, 65_000


def picture_patches(n, rng):
    """Mean-free 8×8 patches of a photograph, grey values 0 to 255, in Fortran order as SPAMS requires."""
    grey = load_sample_image("china.jpg").mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (8, 8)).reshape(-1, M)
    patches = windows[rng.choice(len(windows), n, replace=False)]
    return (patches - patches.mean(axis=1, keepdims=True)).T


def synthetic_signals(n, dictionary, rng):
    """Five Gaussian coefficients on random atoms, 20 dB of noise."""
    rows = np.argsort(rng.random((n, D)), axis=1)[:, :S].ravel()
    X = scipy.sparse.csc_array((rng.standard_normal(n * S), rows, np.arange(0, n * S + 1, S)), shape=(D, n))
    clean = (X.T @ dictionary.T).T
    noise = rng.standard_normal((n, M)).T
    return np.asfortranarray(clean + noise * 0.1 * np.linalg.norm(clean) / np.linalg.norm(noise))


def overcomplete_dct():
    """The usual 64×256 starting dictionary for 8×8 patches."""
    waves = np.cos(np.outer(np.arange(8), np.arange(16)) * np.pi / 16)
    waves[:, 1:] -= waves[:, 1:].mean(axis=0)
    dictionary = np.kron(waves, waves)
    return np.asfortranarray(dictionary / np.linalg.norm(dictionary, axis=0))


def race(methods, repeats):
    """The smallest time of each method, run in turn so that a busy machine hits all of them."""
    times = dict.fromkeys(methods, np.inf)
    results = {}
    for _ in range(repeats):
        for name, method in methods.items():
            start = time.perf_counter()
            results[name] = method()
            times[name] = min(times[name], time.perf_counter() - start)
    return times, results


def error(Y, dictionary, X):
    return np.sum((Y - dictionary @ X) ** 2) / Y.shape[1]


def objective(Y, dictionary, X, alpha):
    return 0.5 * np.sum((Y - dictionary @ X) ** 2) + alpha * abs(X).sum()


def line(name, seconds, n, baseline, note=""):
    speed = f"{n / seconds:>12,.0f} signals/s {baseline / seconds:>8.2f}x"
    print(f"  {name:<42}{seconds * 1e3:>9.0f} ms {speed}  {note}")


def greedy(Y, dictionary, repeats):
    n, few = Y.shape[1], max(1, Y.shape[1] // 20)
    gram = dictionary.T @ dictionary
    omp, forward = coders.OMP(sparsity=S), coders.ForwardSelection(sparsity=S)
    methods = {
        "bare product DᵀY": lambda: dictionary.T @ Y,
        "OMP, one thread": lambda: omp.encode(Y, dictionary, threads=1),
        "OMP, two threads": lambda: omp.encode(Y, dictionary, threads=2),
        "ForwardSelection, one thread": lambda: forward.encode(Y, dictionary, threads=1),
        "spams.omp": lambda: spams.omp(Y, dictionary, L=S, eps=0.0, numThreads=1),
        "sklearn orthogonal_mp_gram (one in 20)": lambda: orthogonal_mp_gram(
            gram, dictionary.T @ Y[:, :few], n_nonzero_coefs=S
        ),
    }
    times, results = race(methods, repeats)
    times["sklearn orthogonal_mp_gram (one in 20)"] *= n / few
    for name, seconds in times.items():
        X = results[name]
        note = f"error {error(Y, dictionary, X):.6g}" if scipy.sparse.issparse(X) else ""
        line(name, seconds, n, times["spams.omp"], note)
    one = times["OMP, one thread"]
    print(f"  OMP: {one / times['bare product DᵀY']:.2f} products (goal 3 at most), "
          f"{times['spams.omp'] / one:.2f}x SPAMS (2.5), "
          f"{times['sklearn orthogonal_mp_gram (one in 20)'] / one:.0f}x scikit-learn (40), "
          f"{one / times['OMP, two threads']:.2f}x with two threads (1.7)")  # fmt: skip
    print(
        f"  ForwardSelection: {times['spams.omp'] / times['ForwardSelection, one thread']:.2f}x SPAMS (1.5)"
    )


def lasso(Y, dictionary, repeats):
    """The lasso at a fifth of a typical largest correlation, on one signal in 20."""
    Y = np.asfortranarray(Y[:, ::20])
    n = Y.shape[1]
    alpha = 0.2 * np.abs(dictionary.T @ Y).max(axis=0).mean()
    coder = coders.Lasso(alpha=alpha)
    codes = coder.encode(Y, dictionary)
    methods = {
        "Lasso, one thread": lambda: coder.encode(Y, dictionary, threads=1),
        "Lasso, from its own codes": lambda: coder.encode(Y, dictionary, codes=codes, threads=1),
        "spams.lasso": lambda: spams.lasso(Y, dictionary, lambda1=alpha, mode=2, numThreads=1),
        "sklearn sparse_encode, lasso_cd": lambda: (
            sparse_encode(Y.T, dictionary.T, algorithm="lasso_cd", alpha=alpha).T
        ),
    }
    times, results = race(methods, repeats)
    print(f"  lasso of {n:,} signals, {codes.nnz / n:.1f} atoms each; x = times the speed of scikit-learn")
    for name, seconds in times.items():
        value = objective(Y, dictionary, results[name], alpha)
        line(name, seconds, n, times["sklearn sparse_encode, lasso_cd"], f"objective {value:.12g}")
    ratio = times["sklearn sparse_encode, lasso_cd"] / times["Lasso, one thread"]
    print(f"  Lasso: {ratio:.1f}x scikit-learn (3)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the signals")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    n = N // 10 if arguments.quick else N
    rng = np.random.default_rng(0)
    random = rng.standard_normal((M, D))
    random = np.asfortranarray(random / np.linalg.norm(random, axis=0))
    data = {
        "patches of a picture, DCT dictionary": (picture_patches(n, rng), overcomplete_dct()),
        "synthetic signals, Gaussian dictionary": (synthetic_signals(n, random, rng), random),
    }
    for name, (Y, dictionary) in data.items():
        for coder in (coders.OMP(sparsity=S), coders.ForwardSelection(sparsity=S), coders.Lasso(alpha=1.0)):
            coder.encode(Y[:, :10], dictionary)  # compile
        print(f"{name}: m={M}, d={D}, S={S}, n={n:,}; x = times the speed of spams.omp")
        greedy(Y, dictionary, arguments.repeats)
        lasso(Y, dictionary, arguments.repeats)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # scikit-learn warns of each signal it did not finish
    with threadpool_limits(1):
        main()
