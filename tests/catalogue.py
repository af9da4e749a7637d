"""Bad and odd input of all kinds, given to nine functions: refused with a sentence, or a sound answer.

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
from catalogue_arguments import ARGUMENTS, value
from catalogue_matrices import CODES, DICTIONARIES
from catalogue_signals import REFUSED, SIGNALS, WORKS

import manifold_dl as mdl

D, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=3, snr_db=20, rng=0)
GOOD = {
    **{"signals": Y, "dictionary": D, "codes": X, "n_atoms": 12, "sparsity": 3, "max_iter": 2, "tol": 0.0},
    **{"mu": 0.1, "rng": 0, "threads": 1, "callbacks": (), "update": None, "coder": None, "start": D},
    **{"validation": None, "minibatches": None, "alpha": 0.1, "weights": None, "entry weights": None},
}
WEIGHTS = np.random.default_rng(0).uniform(0.5, 3, 60)  # what odd weights are made of


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
    | ARGUMENTS
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


def _weights(given):
    entries = getattr(given, "entry weights")
    return given.weights if entries is None else entries


def learn(given):
    options = _learning(given) | {"rng": given.rng, "threads": given.threads, "weights": _weights(given)}
    options |= {"validation": given.validation, "minibatches": given.minibatches}
    return mdl.learn_dictionary(given.signals, given.n_atoms, **options).dictionary


def minibatches(given):
    """A pass over mini-batches before a full iteration."""
    passes = mdl.MiniBatches(size=1024) if given.minibatches is None else given.minibatches
    return learn(SimpleNamespace(**vars(given) | {"minibatches": passes}))


def simco(given):
    rule = mdl.SimCO(mu=given.mu, threads=given.threads)
    weights = _weights(given)
    return rule(given.signals, given.dictionary, given.codes, rng=given.rng, weights=weights)[0]


def ksvd(given):
    codes = given.codes if given.dictionary is D else scipy.sparse.csc_array(X * 1.0)
    rule = mdl.KSVD(mu=given.mu, threads=given.threads)
    weights = given.weights
    return rule(given.signals, given.dictionary, codes, rng=given.rng, weights=weights)[0]


def problem(given):
    """The direction of the gradient on the spheres, as a matrix of unit columns that can be compared."""
    options = {"mu": given.mu, "threads": given.threads, "weights": _weights(given)}
    return _slope(mdl.update_problem(given.signals, given.codes, **options), D)


def lasso(given):
    """The same for codes of an absolute alpha: it is that of the signals as they are given."""
    options = {"mu": given.mu, "threads": given.threads, "weights": _weights(given), "alpha": given.alpha}
    return _slope(mdl.lasso_problem(given.signals, given.n_atoms, **options), given.dictionary)


def _slope(made, dictionary):
    made.codes(dictionary)
    gradient = made.euclidean_gradient(dictionary)
    return unit(np.array(gradient)) if np.isfinite(made.cost(dictionary)) else np.nan * gradient


def encode(given):
    weights = _weights(given)
    codes = _coder(given).encode(given.signals, given.dictionary, threads=given.threads, weights=weights)
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
    return _model(given).fit(_rows(given.signals), sample_weight=given.weights).components_.T


def partial_fit(given):
    return _model(given).partial_fit(_rows(given.signals), sample_weight=given.weights).components_.T


BOTH_WEIGHTS = ("weights", "entry weights")
FUNCTION_ONLY = ("alpha", "entry weights", "validation", "minibatches")
READS = {
    "learn_dictionary": (learn, set(GOOD) - {"alpha"}),
    "mini-batches": (minibatches, set(GOOD) - {"alpha", "codes"}),  # given supports are of all signals
    "SimCO": (simco, {"signals", "dictionary", "codes", "mu", "threads", *BOTH_WEIGHTS}),
    "KSVD": (ksvd, {"signals", "dictionary", "codes", "mu", "threads", "weights"}),
    "update_problem": (problem, {"signals", "codes", "mu", "threads", *BOTH_WEIGHTS}),
    "lasso_problem": (lasso, {"signals", "n_atoms", "mu", "threads", "alpha", *BOTH_WEIGHTS}),
    "encode": (encode, {"signals", "dictionary", "codes", "sparsity", "threads", *BOTH_WEIGHTS}),
    "fit": (fit, set(GOOD) - {"threads", *FUNCTION_ONLY}),
    "partial_fit": (partial_fit, set(GOOD) - {"threads", "max_iter", "tol", "callbacks", *FUNCTION_ONLY}),
}


def outcome(kind, entry):
    """(verdict, what happened) of one run; the verdict is "ok", "silent", "crash", "refused" or "-"."""
    (argument, expected, change), (call, reads) = KINDS[kind], READS[entry]
    if argument not in reads:
        return "-", ""
    good = {"weights": WEIGHTS, "entry weights": WEIGHTS, "validation": Y}.get(argument, GOOD[argument])
    given = SimpleNamespace(**GOOD | {argument: change(good)})
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
    signals = Y if kind.startswith("times") and entry not in ("KSVD", "lasso_problem") else signals
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


def _plain_weights(kind, entry, weights):
    return None if kind.endswith("ones") else np.ascontiguousarray(np.asarray(weights, dtype=float))


PLAIN = {"signals": _plain_signals, "dictionary": _plain_dictionary, "codes": _plain_codes}
PLAIN |= {"weights": _plain_weights, "entry weights": _plain_weights}


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
