"""What the compiled kernels share: how they are compiled, and the small pieces inlined into them.

A support is a run of `indices` from `begin` on, `s` long. The diagonal of a Cholesky factor L holds 1/L_aa.
"""

import sys

import numpy as np
from numba import njit
from numba.core import event

# Sums may be reordered so that they vectorise, but NaN and infinity keep their meaning.
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})


@compiled
def extent(indptr):
    """The size of the largest support, and the number of entries in all Cholesky factors."""
    largest, n_factors = 0, 0
    for j in range(len(indptr) - 1):
        s = indptr[j + 1] - indptr[j]
        largest = max(largest, s)
        n_factors += s * (s + 1) // 2
    return largest, n_factors


@compiled
def cholesky(gram, indices, begin, s, mu, ratio, L):
    top = 0.0
    ok = True
    for a in range(s):
        i = indices[begin + a]
        for b in range(a):
            entry = gram[i, indices[begin + b]]
            for l in range(b):
                entry -= L[a, l] * L[b, l]
            L[a, b] = entry * L[b, b]
        pivot = gram[i, i] + mu
        top = max(top, pivot)
        for l in range(a):
            pivot -= L[a, l] * L[a, l]
        if not pivot > ratio * top:
            ok = False
            pivot = top
        L[a, a] = 1.0 / np.sqrt(pivot) if pivot > 0 else 1.0
    return ok


@compiled
def forward(L, s, x):
    for a in range(s):
        total = x[a]
        for l in range(a):
            total -= L[a, l] * x[l]
        x[a] = total * L[a, a]


@compiled
def backward(L, s, x):
    for a in range(s - 1, -1, -1):
        total = x[a]
        for l in range(a + 1, s):
            total -= L[l, a] * x[l]
        x[a] = total * L[a, a]


@compiled
def residual(signals, j, indptr, indices, atoms, codes, r):
    for p in range(len(r)):
        r[p] = signals[j, p]
    for a in range(indptr[j], indptr[j + 1]):
        i, x = indices[a], codes[a]
        for p in range(len(r)):
            r[p] -= x * atoms[i, p]


@compiled
def combine(indices, begin, s, codes, atoms, v):
    v[:] = 0
    for a in range(begin, begin + s):
        i, x = indices[a], codes[a]
        for p in range(len(v)):
            v[p] += x * atoms[i, p]


@compiled
def add_gradient(r, indices, codes, begin, s, gradient):
    total = 0.0
    for p in range(len(r)):
        total += r[p] * r[p]
    for a in range(begin, begin + s):
        i, x = indices[a], 2 * codes[a]
        for p in range(len(r)):
            gradient[i, p] -= x * r[p]
    return total


class _SayOnce(event.Listener):
    """The first compilation takes seconds: say so, once. Later runs read the kernels from disk."""

    said = False

    def on_start(self, happening):
        function = happening.data["dispatcher"].py_func
        if not self.said and function.__module__.startswith("manifold_dl."):
            self.said = True
            print("manifold_dl: compiling kernels (once; they are kept on disk) ...", file=sys.stderr)

    def on_end(self, happening):
        pass


event.register("numba:compile", _SayOnce())
