"""What other libraries do with the bad and odd signals of the catalogue (`tests/catalogue_signals.py`).

Run it in an environment of their own, which needs nothing of this package:

    python -m venv peers && peers/bin/pip install scikit-learn ksvd dictlearn spams-bin
    peers/bin/python benchmarks/peers_catalogue.py

Every run is a process of its own, since some crash the interpreter or never end. Per library it prints how
many kinds that have to be refused were accepted (silent), how many gave an exception that the library did not
raise itself (unexplained), how many ended the process or took over 20 s (crash), how many kinds that should
work were refused, and how many gave numbers that are not finite.
"""

import multiprocessing
import sys
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from catalogue_signals import EITHER, REFUSED, SIGNALS

LIBRARIES = {"scikit-learn": "sklearn", "ksvd": "ksvd", "dictlearn": "dictlearn", "spams-bin": "spams"}
rng = np.random.default_rng(0)
D = rng.standard_normal((8, 12))
D /= np.linalg.norm(D, axis=0)
X = rng.standard_normal((12, 60)) * (rng.random((12, 60)) < 0.25)
Y = D @ X + 0.05 * rng.standard_normal((8, 60))


def rows(matrix):
    if isinstance(matrix, list):
        return [list(row) for row in zip(*matrix, strict=False)]
    return type(matrix)(matrix.array.T) if hasattr(matrix, "array") else getattr(matrix, "T", matrix)


def sklearn(signals):
    from sklearn.decomposition import DictionaryLearning

    return DictionaryLearning(12, max_iter=3, random_state=0).fit(rows(signals)).components_


def ksvd(signals):
    from ksvd import ApproximateKSVD

    return ApproximateKSVD(12, max_iter=3, transform_n_nonzero_coefs=3).fit(rows(signals)).components_


def dictlearn(signals):
    import dictlearn

    model = dictlearn.DictionaryLearning(12, n_nonzero_coefs=3, max_iter=3, random_state=0)
    return model.fit(rows(signals)).components_


def spams(signals):
    import spams

    signals = np.asfortranarray(signals)  # as its manual asks for
    return spams.trainDL(signals, K=12, lambda1=0.1, iter=5, numThreads=1, verbose=False)


def verdict(library, kind):
    """What one run does."""
    try:
        answer = globals()[LIBRARIES[library]](SIGNALS[kind][1](Y.copy()))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        own = LIBRARIES[library] in place and isinstance(error, ValueError | TypeError)
        return "refused" if own else "unexplained"
    return "accepted" if np.isfinite(np.asarray(answer, dtype=float)).all() else "not finite"


def in_a_process(library, kind):
    """The same in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(verdict(library, kind)))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(20) else "crash"
    except EOFError:  # it ended without a word
        return "crash"
    finally:
        child.kill()
        child.join()


def main():
    warnings.simplefilter("ignore")
    print("| library | silent | unexplained | crash | refused that should work | not finite |")
    print("|---|---|---|---|---|---|")
    for library in LIBRARIES:
        counts = dict.fromkeys(["silent", "unexplained", "crash", "refused", "not finite"], 0)
        verdict(library, "by columns")  # imports it once for all
        for kind, (expected, _) in SIGNALS.items():
            found = in_a_process(library, kind)
            if found == "accepted" and expected == REFUSED:
                counts["silent"] += 1
            elif found == "refused" and expected not in (REFUSED, EITHER):
                counts["refused"] += 1
            elif found in ("unexplained", "crash", "not finite"):
                counts[found] += 1
        numbers = " | ".join(str(n) for n in counts.values())
        print(f"| {library} {version(library)} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
