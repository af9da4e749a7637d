"""Bad and odd input of all kinds, given to seven functions: refused with a sentence, or a sound answer.

`python tests/catalogue.py` prints the table. A run is *silent* if what has to be refused is accepted, or if
an answer is wrong: not finite, not on the spheres, or another one than that of the same numbers in their
plain form (double precision, row after row, unit atoms, sorted codes). Whether it is the best one is for
other tests to say. It is a *crash* if the exception is none of our sentences, and a *refusal* if it should
have worked.
"""

import sys
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse
from catalogue_signals import REFUSED, SIGNALS, WORKS

import manifold_dl as mdl

D, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=3, snr_db=20, rng=0)
GOOD = {
    **{"signals": Y, "dictionary": D, "codes": X, "n_atoms": 12, "sparsity": 3, "max_iter": 2, "tol": 0.0},
    **{"mu": 0.1, "rng": 0, "threads": 1, "callbacks": (), "update": None, "coder": None, "start": D},
}


def broken(**parts):
    def change(X):
        X = X.copy()
        for name, (place, value) in parts.items():
            getattr(X, name)[place] = value
        return X

    return change


def value(item):
    return lambda good: item


def relabelled(X):
    X = scipy.sparse.csc_array(X)
    X.indices, X.data = X.indices[::-1].copy(), X.data[::-1].copy()  # not sorted inside a column
    return scipy.sparse.csc_array((X.data, X.indices, X.indptr), shape=X.shape)


DICTIONARIES = {
    "dictionary with NaN": (REFUSED, lambda D: np.where(D > 0.5, np.nan, D)),
    "dictionary with a zero atom": (REFUSED, lambda D: D * (np.arange(12) != 4)),
    "atoms of another length": (REFUSED, lambda D: D[:6]),
    "masked dictionary": (REFUSED, lambda D: np.ma.masked_array(D)),
    "complex dictionary": (REFUSED, lambda D: D + 1j),
    "dictionary of text": (REFUSED, lambda D: D.astype(str)),
    "atoms of norm 1e160": (WORKS, lambda D: 1e160 * D),
    "atoms of norm 1e-160": (WORKS, lambda D: 1e-160 * D),
    "equal atoms": (WORKS, lambda D: D[:, [0, 0, *range(2, 12)]]),
    "whole numbers as atoms": (WORKS, lambda D: np.rint(9 * D).astype(int)),
    "float32 dictionary": (WORKS, lambda D: D.astype(np.float32)),
    "dictionary as lists": (WORKS, lambda D: D.tolist()),
}
CODES = {
    "codes with NaN": (REFUSED, lambda X: scipy.sparse.csc_array(X * np.nan)),
    "indptr beyond the memory": (REFUSED, broken(indptr=(3, 10**6))),
    "indptr that descends": (REFUSED, broken(indptr=(5, 0))),
    "index outside": (REFUSED, broken(indices=(7, 99))),
    "negative index": (REFUSED, broken(indices=(7, -3))),
    "codes of another shape": (REFUSED, lambda X: X[:, :40]),
    "masked codes": (REFUSED, lambda X: np.ma.masked_array(X.toarray())),
    "codes of text": (REFUSED, lambda X: X.toarray().astype(str)),
    "dense codes": (WORKS, lambda X: X.toarray()),
    "csr codes": (WORKS, lambda X: X.tocsr()),
    "unsorted codes": (WORKS, relabelled),
    "no codes at all": (WORKS, lambda X: scipy.sparse.csc_array(X.shape)),
    "codes of 1e17": (WORKS, lambda X: X * 1e17),
}
PARAMETERS = {
    "n_atoms = 0": ("n_atoms", REFUSED, value(0)),
    "n_atoms = 2.5": ("n_atoms", REFUSED, value(2.5)),
    "n_atoms = 10^12": ("n_atoms", REFUSED, value(10**12)),
    "sparsity = 0": ("sparsity", REFUSED, value(0)),
    "sparsity = 2.5": ("sparsity", REFUSED, value(2.5)),
    "sparsity above m": ("sparsity", REFUSED, value(9)),
    "max_iter = 0": ("max_iter", REFUSED, value(0)),
    "tol = NaN": ("tol", REFUSED, value(float("nan"))),
    "mu = NaN": ("mu", REFUSED, value(float("nan"))),
    "mu < 0": ("mu", REFUSED, value(-1.0)),
    "mu = text": ("mu", REFUSED, value("small")),
    "rng = text": ("rng", REFUSED, value("seed")),
    "threads = 0": ("threads", REFUSED, value(0)),
    "a function for callbacks": ("callbacks", REFUSED, value(print)),
    "a class for an update": ("update", REFUSED, value(mdl.SimCO)),
    "a class for a coder": ("coder", REFUSED, value(mdl.OMP)),
    "an unknown coder": ("coder", REFUSED, value("opm")),
    "an unknown start": ("start", REFUSED, value("dtc")),
}
KINDS = (
    {name: ("signals", *kind) for name, kind in SIGNALS.items()}
    | {name: ("dictionary", *kind) for name, kind in DICTIONARIES.items()}
    | {name: ("codes", *kind) for name, kind in CODES.items()}
    | PARAMETERS
)


def _coder(given):
    if given.coder is not None:
        return given.coder
    return mdl.OMP(sparsity=given.sparsity) if given.codes is X else mdl.FixedSupport(given.codes)


def _learning(given):
    start = given.start if given.dictionary is D else given.dictionary
    update = mdl.SimCO(mu=given.mu) if given.update is None else given.update
    return {"coder": _coder(given), "update": update, "max_iter": given.max_iter, "tol": given.tol} | {
        "init": start,
        "callbacks": given.callbacks,
    }


def learn(given):
    options = _learning(given) | {"rng": given.rng, "threads": given.threads}
    return mdl.learn_dictionary(given.signals, given.n_atoms, **options).dictionary


def simco(given):
    return mdl.SimCO(mu=given.mu, threads=given.threads)(
        given.signals, given.dictionary, given.codes, rng=given.rng
    )[0]


def ksvd(given):
    codes = given.codes if given.dictionary is D else scipy.sparse.csc_array(X * 1.0)
    rule = mdl.KSVD(mu=given.mu, threads=given.threads)
    return rule(given.signals, given.dictionary, codes, rng=given.rng)[0]


def problem(given):
    """The direction of the gradient on the spheres, as a matrix of unit columns that can be compared."""
    made = mdl.update_problem(given.signals, given.codes, mu=given.mu, threads=given.threads)
    made.codes(D)
    return unit(made.euclidean_gradient(D)) if np.isfinite(made.cost(D)) else np.nan * D


def encode(given):
    codes = _coder(given).encode(given.signals, given.dictionary, threads=given.threads)
    return unit(codes.toarray())


def unit(matrix):
    """The columns with norm 1; zero columns become the first axis."""
    largest = np.abs(matrix).max(axis=0)
    scaled = matrix / np.where(largest > 0, largest, 1)
    scaled[0, largest == 0] = 1
    return scaled / np.linalg.norm(scaled, axis=0)


def _rows(matrix):
    """Samples in rows, where that can be done with what was given."""
    if isinstance(matrix, list):
        return [list(row) for row in zip(*matrix, strict=False)]
    return type(matrix)(matrix.array.T) if hasattr(matrix, "array") else getattr(matrix, "T", matrix)


def _model(given):
    options = _learning(given) | {"init": _rows(given.start if given.dictionary is D else given.dictionary)}
    if isinstance(options["init"], str):
        options["init"] = given.start
    options |= {"random_state": given.rng, "n_jobs": given.threads}
    return mdl.ManifoldDictionaryLearning(given.n_atoms, **options)


def fit(given):
    return _model(given).fit(_rows(given.signals)).components_.T


def partial_fit(given):
    return _model(given).partial_fit(_rows(given.signals)).components_.T


READS = {
    "learn_dictionary": (learn, set(GOOD)),
    "SimCO": (simco, {"signals", "dictionary", "codes", "mu", "threads"}),
    "KSVD": (ksvd, {"signals", "dictionary", "codes", "mu", "threads"}),
    "update_problem": (problem, {"signals", "codes", "mu", "threads"}),
    "encode": (encode, {"signals", "dictionary", "codes", "sparsity", "threads"}),
    "fit": (fit, set(GOOD) - {"threads"}),
    "partial_fit": (partial_fit, set(GOOD) - {"threads", "max_iter", "tol", "callbacks"}),
}


def outcome(kind, entry):
    """(verdict, what happened) of one run; the verdict is "ok", "silent", "crash", "refused" or "-"."""
    (argument, expected, change), (call, reads) = KINDS[kind], READS[entry]
    if argument not in reads:
        return "-", ""
    given = SimpleNamespace(**GOOD | {argument: change(GOOD[argument])})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is more than what is asked for here
            answer = call(given)
    except Exception as error:
        if not is_sentence(error):
            return "crash", f"{type(error).__name__}: {error}"
        return "refused" if expected == WORKS else "ok", str(error)
    if expected == REFUSED:
        return "silent", "accepted"
    norms = np.linalg.norm(np.asarray(answer, float), axis=0)
    if not np.isfinite(answer).all() or np.abs(norms - 1).max() > 1e-5:  # single precision, and its sums
        return "silent", "not finite, or not on the spheres"
    if expected == WORKS:
        apart = distance_to_plain(kind, entry, given, answer)
        if apart > tolerance(answer):
            return "silent", f"{apart:.1e} away from the answer for the plain form"
    return "ok", ""


def distance_to_plain(kind, entry, given, answer):
    """The largest difference to the answer for the same numbers in their plain form."""
    argument = KINDS[kind][0]
    if argument not in PLAIN:
        return 0.0
    made = PLAIN[argument](kind, entry, getattr(given, argument))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = READS[entry][0](SimpleNamespace(**GOOD | {argument: made}))
    return float(np.abs(np.asarray(answer, float) - expected).max())


def tolerance(answer):
    """Rounding errors of the precision of the answer, after a few iterations."""
    return 1e-3 if np.asarray(answer).dtype == np.float32 else 1e-10


def _plain_signals(kind, entry, signals):
    # Units do not matter, unless codes in the old ones are given, which K-SVD goes on from.
    signals = Y if kind.startswith("times") and entry != "KSVD" else signals
    return np.ascontiguousarray(np.asarray(signals, dtype=float))


def _plain_dictionary(kind, entry, dictionary):
    atoms = np.ascontiguousarray(np.asarray(dictionary, dtype=float))
    if entry in ("KSVD", "encode"):  # their codes belong to atoms of these norms
        return atoms
    return D if kind.startswith("atoms of norm") else atoms / np.linalg.norm(atoms, axis=0)


def _plain_codes(kind, entry, codes):
    plain = scipy.sparse.csc_array(codes, dtype=float)
    plain.sort_indices()
    return plain


PLAIN = {"signals": _plain_signals, "dictionary": _plain_dictionary, "codes": _plain_codes}


def is_sentence(error):
    """Whether it was raised on purpose: by this package, or by scikit-learn's validation of samples."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = Path(mdl.__file__).parent in Path(place).parents or "sklearn" in place
    return ours and isinstance(error, ValueError | TypeError | FileNotFoundError | mdl.ComponentError)


def main():
    counts = dict.fromkeys(["ok", "silent", "crash", "refused"], 0)
    print(f"{'':34}" + " ".join(f"{entry[:9]:>9}" for entry in READS))
    for kind in KINDS:
        verdicts = [outcome(kind, entry) for entry in READS]
        print(f"{kind:34}" + " ".join(f"{verdict:>9}" for verdict, _ in verdicts))
        for verdict, said in verdicts:
            if verdict in counts:
                counts[verdict] += 1
            if verdict not in ("ok", "-"):
                print(f"    {verdict}: {said}")
    total = sum(counts.values())
    print(f"{len(KINDS)} kinds, {total} runs: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    return int(counts["ok"] < total)


if __name__ == "__main__":
    sys.exit(main())
