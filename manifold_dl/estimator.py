"""The scikit-learn face of dictionary learning: samples and atoms in rows.

This is the one place that transposes. A C-ordered n×m array of samples is, read by columns, the m×n matrix of
signals that everything else works with, so nothing is copied.
"""

import copy
import warnings
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from numbers import Integral

import joblib
import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from manifold_dl._validation import require_sound_indices, require_unmasked
from manifold_dl.coders import OMP
from manifold_dl.coders.calling import run_coder
from manifold_dl.components import by_name
from manifold_dl.engines.threads import using_threads
from manifold_dl.engines.units import unit_exponent
from manifold_dl.learning.callbacks import Progress
from manifold_dl.learning.history import History
from manifold_dl.learning.initialization import feasible_start
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.minibatch import SCHEDULED_BATCHES, OnlineState, online_step
from manifold_dl.learning.result import Reason
from manifold_dl.learning.signal_sums import code_energies, explained_fraction
from manifold_dl.updates.simco import SimCO

FLOATS = (np.float64, np.float32)


class ManifoldDictionaryLearning(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Dictionary learning as a scikit-learn transformer: samples ≈ `codes @ components_`.

    Parameters
    ----------
    n_components : int, optional
        The number of atoms; by default as many as there are features.
    coder : SparseCoder, optional
        By default `OMP` with a tenth as many atoms a sample as there are features, and at least one. A coder
        given by its name, such as ``"iht"``, takes as many, if it has a parameter `sparsity`.
    update : DictionaryUpdate, optional
        By default `SimCO()`. Or its name: ``"ksvd"``.
    max_iter : int
        Outer iterations of `fit`.
    init : "data", "random", "dct" or array (n_components, n_features)
    tol : float
        Stop when the loss has changed by less than this share in each of three iterations.
    random_state : int, RandomState, Generator or None
        None draws fresh randomness; NumPy's global generator is neither read nor changed.
    n_jobs : int, optional
        Threads, counted as scikit-learn does: None is one, -1 all processors. The result is the same bit by
        bit for any number.
    callbacks : sequence of Callback
        Called after every iteration of `fit`.
    verbose : bool
        Show a progress bar.

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
    n_samples_seen_ : int
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if the samples came with names.

    Notes
    -----
    The fields of the parts are parameters too, at any depth: ``set_params(coder__sparsity=3,
    update__schedule__size=8)``, and likewise in `GridSearchCV`.

    See Also
    --------
    learn_dictionary : the same with signals in columns, sparse codes and more control.

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

    def __init__(
        self,
        n_components=None,
        *,
        coder=None,
        update=None,
        max_iter=50,
        init="data",
        tol=1e-6,
        random_state=None,
        n_jobs=None,
        callbacks=(),
        verbose=False,
    ):
        self.n_components = n_components
        self.coder = coder
        self.update = update
        self.max_iter = max_iter
        self.init = init
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(self, X, y=None):
        """Learn the dictionary of the samples X (n_samples, n_features); y is ignored."""
        with self._unchanged_on_error():
            self._learn(X)
        return self

    def fit_transform(self, X, y=None):
        """Learn the dictionary of the samples and return their codes, without coding them once more."""
        with self._unchanged_on_error():
            return _dense(self._learn(X).codes)

    def partial_fit(self, X, y=None):
        """Learn from one more batch of samples.

        The batch is coded, one stage of the update runs on it, and every atom moves towards the result by the
        share that the batch has in all the atom's evidence. Old samples are forgotten: one that was seen as
        number N weighs (N / `n_samples_seen_`)¹⁰, so about the newest eleventh of the stream counts
        (`minibatch.online_step` has the formula and the measurements behind it). It continues where `fit`,
        or the last batch, ended; the first batch also provides the start. `history_` gets the loss of the
        batch before the dictionary saw it. `callbacks`, `max_iter` and `tol` play no role, and no atom is
        replaced. A schedule of μ is bound to 50 batches, so the default has a ridge in the first 30; after
        `fit` it goes on from where that ended.
        Unit atoms move one by one along great circles; where a manifold ties atoms to each other, as Stiefel
        does, they move together and are brought onto it again.
        """
        with self._unchanged_on_error():
            self._learn_batch(X)
        return self

    def transform(self, X):
        """The codes of samples, dense (n_samples, n_components)."""
        check_is_fitted(self)
        return _dense(self._encode(self._signals(X, reset=False)))

    def inverse_transform(self, X):
        """The samples that codes X (n_samples, n_components), dense or sparse, stand for."""
        check_is_fitted(self)
        _require_numbers(X, "X")
        codes = check_array(X, accept_sparse=("csr", "csc"), dtype=FLOATS)
        if codes.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {codes.shape[1]} columns, but there are {len(self.components_)} components: "
                "give the codes that transform returns."
            )
        return codes @ self.components_.astype(codes.dtype, copy=False)

    def score(self, X, y=None):
        """The share of the samples' energy that their codes represent: 1 − ‖X − `codes @ components_`‖²/‖X‖².

        1 is perfect, 0 is what codes of zero achieve. Nothing is centred, since the model has no mean.
        """
        check_is_fitted(self)
        signals = self._signals(X, reset=False)
        return explained_fraction(signals, self.components_.T, self._encode(signals))

    @property
    def explained(self):
        """The fraction of the training samples' energy that the codes of `fit` represent.

        It is `Result.explained`: 1 − ‖X − `codes @ components_`‖²/‖X‖² with the codes that `fit_transform`
        returns. `partial_fit` does not keep its samples: after it, `score` answers for any samples you have.
        """
        check_is_fitted(self)
        if not hasattr(self, "_explained"):
            raise AttributeError(
                "explained is known after fit only, and partial_fit keeps no samples: use score(X)."
            )
        return self._explained

    def get_params(self, deep=True):
        """The parameters; with `deep` also the fields of the parts, as in ``coder__sparsity``."""
        params = super().get_params(deep=deep)
        if deep:
            for name in self._get_param_names():
                params |= {f"{name}__{field}": value for field, value in _nested(getattr(self, name))}
        return params

    def set_params(self, **params):
        """Set parameters, or fields of the parts, as in ``coder__sparsity``."""
        super().set_params(**{key: value for key, value in params.items() if "__" not in key})
        changes = {}
        for key, value in params.items():
            name, _, field = key.partition("__")
            if field and name not in self._get_param_names():
                super().set_params(**{key: value})  # refuses it
            if field:
                changes.setdefault(name, {})[field] = value
        for name, fields_of_part in changes.items():
            setattr(self, name, _changed(getattr(self, name), fields_of_part, name))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return len(self.components_)

    def _learn(self, X):
        signals = self._signals(X, reset=True)
        rng = _generator(self.random_state)
        n_atoms, init = self._start(len(signals))
        result = learn_dictionary(
            signals,
            n_atoms,
            coder=self._coder((len(signals), n_atoms)),
            update=self._update(),
            max_iter=self.max_iter,
            init=init,
            tol=self.tol,
            rng=rng,
            callbacks=[*self.callbacks, *([Progress()] if self.verbose else [])],
            threads=joblib.effective_n_jobs(self.n_jobs),
        )
        if result.reason is Reason.INTERRUPTED:
            warnings.warn(str(result.reason), stacklevel=3)
        exponent = unit_exponent(signals)
        energy = code_energies(result.codes, exponent)
        self._rng, self._evidence = rng, OnlineState(energy, signals.shape[1], exponent=exponent)
        self._scheduled_iterations = self.max_iter  # a ridge that has ended does not come back with a batch
        self.history_, self.reason_, self.n_iter_ = result.history, result.reason, result.n_iter
        self._remember(result.dictionary)
        self._explained = result.explained
        return result

    def _learn_batch(self, X):
        first = not hasattr(self, "components_")
        signals = self._signals(X, reset=first)
        if first:
            self._rng = _generator(self.random_state)
            dictionary = feasible_start(signals, *self._start(len(signals)), self._rng, self._update())
            self._evidence = OnlineState(np.zeros(dictionary.shape[1]))
            self._scheduled_iterations = SCHEDULED_BATCHES
            self.history_, self.n_iter_ = History(), 0
        else:
            dictionary = self.components_.T
        with self._threads():
            dictionary, self._evidence, step = online_step(
                signals,
                dictionary.astype(signals.dtype, copy=False),
                self._evidence,
                self._coder(dictionary.shape),
                self._update(),
                iteration=self.n_iter_,
                max_iter=self._scheduled_iterations,
                rng=self._rng,
            )
        before = self.history_.seconds[-1] if len(self.history_) else 0.0
        self.history_(replace(step, seconds=before + step.seconds))
        self.n_iter_ += 1
        self._remember(dictionary)
        self.__dict__.pop("_explained", None)  # it was that of another dictionary

    @contextmanager
    def _unchanged_on_error(self):
        """Leave the model as it was, fitted or not, where learning fails."""
        before, rng = dict(vars(self)), copy.deepcopy(getattr(self, "_rng", None))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            if rng is not None:
                self._rng = rng
            raise

    def _remember(self, dictionary):
        self.components_ = np.ascontiguousarray(dictionary.T)
        self.n_samples_seen_ = self._evidence.seen

    def _signals(self, X, reset):
        """The checked samples in columns: a view, where they are C-ordered floats."""
        _require_numbers(X, "X")
        X = validate_data(self, X, reset=reset, dtype=FLOATS, order="C")
        if X.shape[1] < 2:
            raise ValueError("n_features=1: with a single feature the only unit atoms are +1 and -1.")
        return X.T

    def _start(self, m):
        """The number of atoms, and the start with atoms in columns."""
        init, n_atoms = self.init, self.n_components
        if isinstance(init, str):
            n_atoms = m if n_atoms is None else n_atoms
        else:
            _require_numbers(init, "init")
            init = check_array(init, dtype=FLOATS, input_name="init").T
            n_atoms = init.shape[1] if n_atoms is None else n_atoms
        if isinstance(n_atoms, bool) or not isinstance(n_atoms, Integral) or n_atoms < 1:
            raise ValueError(f"n_components={n_atoms!r}: give a whole number of at least 1.")
        if not isinstance(init, str) and init.shape != (m, n_atoms):
            raise ValueError(
                f"init has shape {init.T.shape}; (n_components, n_features) = ({n_atoms}, {m}) is needed."
            )
        return int(n_atoms), init

    def _coder(self, shape):
        m, d = shape
        sparsity = min(max(m // 10, 1), d)  # scikit-learn's default for OMP, too
        if self.coder is None:
            return OMP(sparsity=sparsity)
        return by_name.component("coders", self.coder, "coder", sparsity=sparsity)

    def _update(self):
        return SimCO() if self.update is None else by_name.component("updates", self.update, "update")

    def _encode(self, signals):
        dictionary = self.components_.T
        with self._threads():
            return run_coder(self._coder(dictionary.shape), signals, dictionary)

    def _threads(self):
        return using_threads(joblib.effective_n_jobs(self.n_jobs))


def _require_numbers(array, name):
    """Refuse what scikit-learn would read as numbers though it is none: hidden entries, text, dates."""
    require_unmasked(array, name)
    if scipy.sparse.issparse(array):
        require_sound_indices(array, name)
        return
    array = np.asarray(array)
    strange = array.dtype.kind in "USMmV"
    if array.dtype.kind == "O":  # of numbers, as tables make them, it is accepted
        strange = any(isinstance(entry, str | bytes | np.datetime64 | np.timedelta64) for entry in array.flat)
    if strange:
        raise ValueError(
            f"{name} has dtype {array.dtype} and holds text or dates; only real numbers are accepted. "
            "Convert it to numbers first."
        )


def _dense(codes):
    return np.ascontiguousarray(codes.toarray().T)


def _generator(random_state):
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def _nested(part):
    """Names and values of a component's fields, those of its components included."""
    if is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            if field.init:
                value = getattr(part, field.name)
                yield field.name, value
                yield from ((f"{field.name}__{name}", inner) for name, inner in _nested(value))


def _changed(part, changes, name):
    """The component with some fields changed; a new one, since components are frozen."""
    if hasattr(part, "set_params"):
        return part.set_params(**changes)
    known = [field for field, _ in _nested(part) if "__" not in field]
    whole, inside = {}, {}
    for key, value in changes.items():
        field, _, rest = key.partition("__")
        if field not in known:
            has = f"has {', '.join(known)}" if known else f"has no such field; set {name} itself first"
            raise ValueError(f"Invalid parameter {name}__{key}: {name}={part!r} {has}.")
        if rest:
            inside.setdefault(field, {})[rest] = value
        else:
            whole[field] = value
    part = replace(part, **whole)
    deeper = {
        field: _changed(getattr(part, field), inner, f"{name}__{field}") for field, inner in inside.items()
    }
    return replace(part, **deeper)
