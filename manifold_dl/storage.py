"""Saving and loading what was learned, results and estimators: `manifold_dl.save` and `manifold_dl.load`.

A file is an `archive`: plain arrays and a little JSON, no pickle.
"""

import os
from typing import TYPE_CHECKING, Any

from manifold_dl.learning import storage
from manifold_dl.learning.archive import damage_named, read, write
from manifold_dl.learning.result import Result

if TYPE_CHECKING:
    from manifold_dl.estimator import ManifoldDictionaryLearning


def save(result: "Result | ManifoldDictionaryLearning", path: str | os.PathLike[str]) -> None:
    """Write a learned `Result`, or an estimator, to one `.npz` file.

    The file is written under another name and then renamed: an interruption leaves no incomplete file.

    Parameters
    ----------
    result : Result or ManifoldDictionaryLearning
        Of an estimator parameters and all that it learned are stored, but no callbacks.
    path : path
        A file of this name is replaced.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from manifold_dl import OMP, ManifoldDictionaryLearning, learn_dictionary
    >>> Y = np.random.default_rng(0).standard_normal((8, 100))
    >>> result = learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=2, rng=0)
    >>> model = ManifoldDictionaryLearning(12, max_iter=2, random_state=0).fit(Y.T)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(result, folder + "/result.npz")
    ...     save(model, folder + "/model.npz")
    ...     result_again, model_again = load(folder + "/result.npz"), load(folder + "/model.npz")
    >>> bool(np.array_equal(result_again.dictionary, result.dictionary))
    True
    >>> bool(np.array_equal(model_again.transform(Y.T), model.transform(Y.T)))
    True
    """
    if isinstance(result, Result):
        storage.save(result, path)
        return
    from manifold_dl.estimator import storage as of_estimator  # imports scikit-learn, which takes a second

    if not isinstance(result, of_estimator.ManifoldDictionaryLearning):
        raise TypeError(
            f"a {type(result).__name__} cannot be saved: give a Result or a ManifoldDictionaryLearning."
        )
    write(path, "estimator", *of_estimator.contents(result))


def load(path: str | os.PathLike[str], max_bytes: int | None = None) -> Any:
    """Read what `save` wrote.

    Nothing is executed: a file from anywhere can be loaded.

    Parameters
    ----------
    path : path
    max_bytes : int, optional
        What the file may unpack to. By default 16 GiB, and fifty times the size of the file.

    Returns
    -------
    Result or ManifoldDictionaryLearning
        What was saved.

    Raises
    ------
    ValueError
        If the file is damaged, is something else, or unpacks to more than is allowed.
    """
    meta, arrays = read(path, ("result", "estimator"), max_bytes)
    with damage_named(path):
        if meta["kind"] == "result":
            return storage.from_contents(meta, arrays)
        from manifold_dl.estimator import storage as of_estimator

        return of_estimator.from_contents(meta, arrays)
