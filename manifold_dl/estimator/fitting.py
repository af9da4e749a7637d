"""How the scikit-learn estimator learns: all samples at once in `fit`, batch by batch in `partial_fit`.

`dictionary_learning.py` adds the methods that users call.
"""

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import is_dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifold_dl._validation import warn_once
from manifold_dl.coders import OMP
from manifold_dl.coders.calling import run_coder
from manifold_dl.coders.protocol import parameter_of
from manifold_dl.components import by_name
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.opening import is_dask_array, open_observed
from manifold_dl.engines.threads import using_threads
from manifold_dl.engines.units import unit_exponent
from manifold_dl.estimator.checks import as_generator, number_and_start, signals_of
from manifold_dl.estimator.parameters import NestedParameters
from manifold_dl.learning.callbacks import Progress
from manifold_dl.learning.distant_codes import encode_columns, encode_incomplete
from manifold_dl.learning.history import History
from manifold_dl.learning.initialization import feasible_start
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.minibatch import SCHEDULED_BATCHES, OnlineState, online_step
from manifold_dl.learning.protocols import Callback
from manifold_dl.learning.result import Reason, Result
from manifold_dl.learning.signal_sums import LossScale, code_energies
from manifold_dl.updates import SimCO
from manifold_dl.updates.protocol import coder_of


class DictionaryFitting(NestedParameters):
    """The part of the estimator that learns and codes; its parameters are those of the subclass."""

    n_components: int | None
    coder: Any
    update: Any
    max_iter: int
    init: Any
    tol: float
    random_state: Any
    n_jobs: int | None
    engine: Any
    callbacks: Sequence[Callback]
    verbose: bool
    missing_values: Any
    minibatches: Any

    @property
    def explained(self) -> float:
        """The fraction of the training samples' energy that the codes of `fit` represent.

        It is `Result.explained`: 1 − ‖X − `codes @ components_`‖²/‖X‖² with the codes that `fit_transform`
        returns. `partial_fit` does not keep its samples: after it, `score` answers for any samples you have.
        """
        check_is_fitted(self)
        if "_explained" not in vars(self):
            raise AttributeError(
                "explained is known after fit only, and partial_fit keeps no samples: use score(X)."
            )
        return self._explained

    @property
    def reason_(self) -> Reason:
        """Why `fit` ended."""
        if "_reason" not in vars(self):
            raise AttributeError("reason_ is known after fit only.")
        return Reason[self._reason]

    def _learn(self, X: Any, sample_weight: Any) -> Result:
        signals, weights = self._opened(*signals_of(self, X, reset=True, sample_weight=sample_weight))
        rng = as_generator(self.random_state)
        n_atoms, init = number_and_start(self.n_components, self.init, len(signals))
        coder = self._coder((len(signals), n_atoms))
        result = learn_dictionary(
            signals,
            n_atoms,
            coder=coder,
            update=self._update(),
            max_iter=self.max_iter,
            init=init,
            tol=self.tol,
            rng=rng,
            callbacks=[*self.callbacks, *([Progress()] if self.verbose else [])],
            threads=None if self.engine else joblib.effective_n_jobs(self.n_jobs),
            engine=self.engine,
            weights=weights,
            minibatches=self.minibatches,
        )
        if result.reason is Reason.INTERRUPTED:
            warnings.warn(str(result.reason), stacklevel=3)
        codes = result.codes
        if isinstance(signals, BlockedSignals):
            codes, exponent = run_coder(coder, signals, result.dictionary, weights=weights), signals.exponent
        else:
            exponent = unit_exponent(signals)
        energy = code_energies(codes, exponent, weights=weights)
        seen = LossScale.of(signals, weights).total_weight
        self._rng, self._state = rng, OnlineState(energy, seen, exponent=exponent)
        self._scheduled_iterations = self.max_iter  # a ridge that has ended does not come back with a batch
        self.history_, self.n_iter_ = result.history, result.n_iter
        self._reason = result.reason.name  # an enum could not be stored by skops
        self._remember(result.dictionary)
        self._explained = result.explained
        return result

    def _learn_batch(self, X: Any, sample_weight: Any) -> None:
        if is_dask_array(X):
            raise TypeError(
                "X is a Dask array, and a batch of partial_fit is an array in memory: give one chunk after "
                "the other, X.blocks[i].compute(), or all samples to fit."
            )
        first = "components_" not in vars(self)
        signals, weights = signals_of(self, X, reset=first, sample_weight=sample_weight)
        if weights is not None and not weights.any():
            raise ValueError("all weights of this batch are zero: there is nothing to learn from.")
        dictionary = self._begin_stream(signals, weights) if first else self.components_.T
        with self._threads():
            dictionary, self._state, step = online_step(
                signals,
                dictionary.astype(signals.dtype, copy=False),
                self._state,
                self._coder(dictionary.shape),
                self._update(),
                iteration=self.n_iter_,
                max_iter=self._scheduled_iterations,
                rng=self._rng,
                weights=weights,
            )
        before = self.history_.seconds[-1] if len(self.history_) else 0.0
        self.history_(replace(step, seconds=before + step.seconds))
        self.n_iter_ += 1
        self._remember(dictionary)
        self.__dict__.pop("_explained", None)  # it was that of another dictionary

    def _begin_stream(self, signals: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The start of a stream whose first batch this is."""
        self._rng = as_generator(self.random_state)
        n_atoms, init = number_and_start(self.n_components, self.init, len(signals))
        self._state = OnlineState(np.zeros(n_atoms))
        self._scheduled_iterations = SCHEDULED_BATCHES
        self.history_, self.n_iter_ = History(), 0
        return feasible_start(signals, n_atoms, init, self._rng, self._update(), weights)

    def _remember(self, dictionary: np.ndarray) -> None:
        self.components_ = np.ascontiguousarray(dictionary.T)
        self.n_samples_seen_ = self._state.seen

    def _coder(self, shape: tuple[int, ...]) -> Any:
        m, d = shape
        sparsity = min(max(m // 10, 1), d)  # scikit-learn's default for OMP, too
        if self.coder is None:
            return coder_of(self._update()) or OMP(sparsity=sparsity)
        return _clipped(by_name.component("coders", self.coder, "coder", sparsity=sparsity), m, d)

    def _update(self) -> Any:
        return SimCO() if self.update is None else by_name.component("updates", self.update, "update")

    def _opened(self, signals: Any, weights: Any) -> tuple[Any, Any]:
        """Samples that are not in memory on their engine; arrays as they are, unless it is remote."""
        if self.engine is None and not is_dask_array(signals):
            return signals, weights
        with self._threads():
            return open_observed(signals, weights, engine=self.engine)

    def _encode(self, signals: Any, weights: Any) -> Any:
        dictionary = self.components_.T
        with self._threads():
            return run_coder(self._coder(dictionary.shape), signals, dictionary, weights=weights)

    def _encoded(self, X: Any, sparse: bool) -> Any:
        """The codes of a Dask array of samples, lazily."""
        from manifold_dl.engines.dask_codes import encoded_rows

        D, encode = self.components_.T, encode_columns if self.missing_values is None else encode_incomplete
        return encoded_rows(X, partial(encode, self._coder(D.shape), D), D.shape[1], sparse)

    def _decoded(self, X: Any) -> Any:
        """The samples that a Dask array of codes represents, lazily."""
        from manifold_dl.engines.dask_codes import decoded_rows

        return decoded_rows(X, self.components_)

    def _threads(self) -> AbstractContextManager[None]:
        return using_threads(joblib.effective_n_jobs(self.n_jobs))


def _clipped(coder: Any, m: int, d: int) -> Any:
    """The coder with no more atoms per sample than there are components, so that a grid search continues.

    More than m, the number of features, stay an error: there the search itself is at fault.
    """
    sparsity: Any = parameter_of(coder, "sparsity")
    if not (is_dataclass(coder) and isinstance(sparsity, Integral)) or isinstance(coder, type):
        return coder
    if not d < int(sparsity) <= m:
        return coder
    warn_once(
        f"sparsity={sparsity} exceeds the number of components, {d}: samples are coded with up to {d} atoms.",
        "sparsity",
    )
    return replace(coder, sparsity=d)
