"""The scikit-learn estimator of dictionary learning: samples and atoms in rows.

This is the one place that transposes. A C-ordered n×m array of samples is, read by columns, the m×n matrix of
signals that everything else works with, so nothing is copied.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from manifold_dl.engines.opening import is_dask_array
from manifold_dl.estimator.checks import FLOATS, require_numbers, signals_of, unchanged_on_error
from manifold_dl.estimator.fitting import DictionaryFitting
from manifold_dl.learning.protocols import Callback
from manifold_dl.learning.signal_sums import explained_fraction


class ManifoldDictionaryLearning(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DictionaryFitting):
    """Dictionary learning as a scikit-learn transformer: samples ≈ `codes @ components_`.

    Parameters
    ----------
    n_components : int, optional
        The number of atoms; by default as many as there are features.
    coder : SparseCoder, optional
        By default that of the update, if it has one (``SimCO(codes=Lasso(alpha=0.1))``), else `OMP` with a
        tenth as many atoms per sample as there are features, and at least one. A coder given by its name,
        such as ``"iht"``, takes as many, if it has a parameter `sparsity`.
    update : DictionaryUpdate, optional
        By default `SimCO()`. Or its name: ``"ksvd"``.
    max_iter : int
        Outer iterations of `fit`.
    init : "data", "random", "dct" or array (n_components, n_features)
        Random distinct samples, random directions, an overcomplete cosine dictionary, or your own.
    tol : float
        Stop when the loss has changed by less than this fraction in each of three iterations.
    random_state : int, RandomState, Generator or None
        None draws fresh randomness; NumPy's global generator is neither read nor changed.
    n_jobs : int, optional
        Threads, counted as scikit-learn does: None is one, -1 all processors. The result is the same bit by
        bit for any number.
    engine : Engine, optional
        Where the samples are and what runs the computation: `engines.Dask(client)` for a cluster. By default
        threads of this process, and for a Dask array the cluster of its client.
    callbacks : sequence of Callback
        Called after every iteration of `fit`.
    verbose : bool
        Show a progress bar.
    missing_values : np.nan, optional
        NaN marks missing entries: the dictionary is learned from the others, `transform` codes incomplete
        samples, and `impute` fills them in. By default NaN is refused.
    minibatches : MiniBatches, False or None
        Passes over mini-batches, with which `fit` begins. None, the default, means `MiniBatches()` with
        `SimCO` and 50,000 samples or more, and none otherwise; False makes all iterations full.
    sparse_output : bool
        Whether `transform` and `fit_transform` return codes as a `scipy.sparse.csr_array`, which holds the
        entries other than zero alone. With thousands of components a dense array may not fit into memory.

    Attributes
    ----------
    components_ : array (n_components, n_features)
        The atoms, each of norm 1.
    n_iter_ : int
        Outer iterations, or batches of `partial_fit`.
    history_ : History
        Loss, objective, time and evaluations of each of them.
    reason_ : Reason
        Why `fit` ended.
    explained : float
        The fraction of the training samples' energy that the codes of `fit` represent.
    n_samples_seen_ : float
        Samples of `fit` and of all batches since; with weights the sum of the mean weights of the samples.
    n_features_in_ : int
        Features of the samples.
    feature_names_in_ : array of str
        Only if the samples came with names.

    See Also
    --------
    learn_dictionary : the same with signals in columns, sparse codes and more control.

    Notes
    -----
    The fields of the components are parameters too, at any depth: ``set_params(coder__sparsity=3,
    update__schedule__size=8)``, and likewise in `GridSearchCV`.

    Examples
    --------
    >>> from manifold_dl import OMP, datasets
    >>> rows = datasets.synthetic(16, 32, 500, sparsity=3, rng=0).signals.T
    >>> model = ManifoldDictionaryLearning(32, coder=OMP(sparsity=3), random_state=0)
    >>> codes = model.fit_transform(rows)
    >>> codes.shape, model.components_.shape
    ((500, 32), (32, 16))
    >>> model.score(rows) > 0.95
    True
    """

    explained, reason_ = DictionaryFitting.explained, DictionaryFitting.reason_  # for the API page

    def __init__(
        self,
        n_components: int | None = None,
        *,
        coder: Any = None,
        update: Any = None,
        max_iter: int = 50,
        init: Any = "data",
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        engine: Any = None,
        callbacks: Sequence[Callback] = (),
        verbose: bool = False,
        missing_values: Any = None,
        minibatches: Any = None,
        sparse_output: bool = False,
    ) -> None:
        self.n_components = n_components
        self.coder = coder
        self.update = update
        self.max_iter = max_iter
        self.init = init
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine
        self.callbacks = callbacks
        self.verbose = verbose
        self.missing_values = missing_values
        self.minibatches = minibatches
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the dictionary of the samples.

        Parameters
        ----------
        X : array (n_samples, n_features)
        y : ignored
        sample_weight : array (n_samples,), optional
            A sample of weight w counts w times.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            self._learn(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the dictionary of the samples and return their codes, without coding them once more.

        Parameters
        ----------
        X : array (n_samples, n_features)
        y : ignored
        sample_weight : array (n_samples,), optional
            As in `fit`.

        Returns
        -------
        array, or csr_array with `sparse_output` (n_samples, n_components)
        """
        with unchanged_on_error(self):
            codes = self._learn(X, sample_weight).codes
        return self.transform(X) if is_dask_array(X) else self._in_rows(codes)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of samples.

        One stage of the update runs on the batch, and every atom moves a fraction of the way to the result:
        the fraction that the batch has in the energy of all codes on the atom. Old samples are forgotten: one
        that was seen as number N weighs (N / `n_samples_seen_`)¹⁰, so about the newest eleventh of the stream
        counts (`minibatch.online_step` has the formula and the measurements). It continues where `fit`, or
        the last batch, ended; the first batch also provides the start. `history_` gets the loss of the batch
        before the dictionary saw it. `callbacks`, `max_iter` and `tol` have no effect, and no atom is
        replaced. A schedule of μ is bound to 50 batches, so the default has a ridge in the first 30; after
        `fit` it continues where that ended. Where a manifold couples atoms, as Stiefel does, they move
        together and are brought onto it again.

        Parameters
        ----------
        X : array (n_samples, n_features)
        y : ignored
        sample_weight : array (n_samples,), optional
            As in `fit`.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            self._learn_batch(X, sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        """The codes of samples.

        Parameters
        ----------
        X : array or Dask array (n_samples, n_features)

        Returns
        -------
        array, or csr_array with `sparse_output` (n_samples, n_components)
            For a Dask array a lazy one of such blocks.
        """
        check_is_fitted(self)
        signals, weights = signals_of(self, X, reset=False)
        if is_dask_array(X):
            return self._encoded(X, self.sparse_output)
        return self._in_rows(self._encode(signals, weights))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The samples that codes represent.

        Parameters
        ----------
        X : dense or sparse array, or Dask array (n_samples, n_components)

        Returns
        -------
        array (n_samples, n_features)
            Of a Dask array a lazy one.
        """
        check_is_fitted(self)
        if is_dask_array(X) and X.shape[1:] == (len(self.components_),):
            return self._decoded(X)
        require_numbers(X, "X")
        codes = check_array(X, accept_sparse=("csr", "csc"), dtype=FLOATS)
        if codes.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {codes.shape[1]} columns, but there are {len(self.components_)} components: "
                "give the codes that transform returns."
            )
        return codes @ self.components_.astype(codes.dtype, copy=False)

    def impute(self, X: Any) -> np.ndarray:
        """The samples with missing entries, marked by NaN, filled in from their codes.

        Parameters
        ----------
        X : array (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_features)
        """
        check_is_fitted(self)
        signals, weights = signals_of(self, X, reset=False)
        if weights is None:
            return np.ascontiguousarray(signals.T)
        codes = self._encode(signals, weights)
        return np.where(weights.T > 0, signals.T, codes.T @ self.components_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The fraction of the samples' energy that their codes represent.

        It is 1 − ‖X − `codes @ components_`‖²/‖X‖²: 1 is perfect, 0 is what codes of zero achieve. Nothing is
        centred, since the model has no mean. Missing entries are left out.

        Parameters
        ----------
        X : array (n_samples, n_features)
        y : ignored
        sample_weight : array (n_samples,), optional
            A sample of weight w counts w times.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        signals, weights = self._opened(*signals_of(self, X, reset=False, sample_weight=sample_weight))
        codes = self._encode(signals, weights)
        return explained_fraction(signals, self.components_.T, codes, weights=weights)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = self.missing_values is not None
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _in_rows(self, codes: Any) -> Any:
        """Codes in columns as `transform` returns them."""
        return codes.T.tocsr() if self.sparse_output else np.ascontiguousarray(codes.toarray().T)
