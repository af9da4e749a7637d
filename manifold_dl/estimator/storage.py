"""A scikit-learn estimator as plain arrays and JSON: what its file holds.

`manifold_dl.storage` writes and reads it. Parameters are stored as `settings.describe` describes them, so
components have to be registered, ours or of a plug-in.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.components.settings import describe, is_text, restore, shown
from manifold_dl.estimator.dictionary_learning import ManifoldDictionaryLearning
from manifold_dl.learning.archive import (
    arrays_to_columns,
    columns_to_arrays,
    generator_to_json,
    json_to_generator,
)
from manifold_dl.learning.checkpoint import online_state
from manifold_dl.learning.history import History
from manifold_dl.learning.minibatch import OnlineState


def contents(model: ManifoldDictionaryLearning) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file holds of an estimator, fitted or not: a header of JSON, and arrays by name.

    Parameters
    ----------
    model : ManifoldDictionaryLearning

    Returns
    -------
    meta, arrays

    Raises
    ------
    ValueError
        If a parameter can only be stored as text, which could not be read back.
    """
    parameters = {name: _described(name, value) for name, value in model.get_params(deep=False).items()}
    if "components_" not in vars(model):
        return {"parameters": parameters, "fitted": None}, {}
    state: OnlineState = model._state
    names = getattr(model, "feature_names_in_", None)
    fitted = {
        "n_iter": model.n_iter_,
        "seen": state.seen,
        "memory": state.memory,
        "exponent": state.exponent,
        "rng": generator_to_json(model._rng),
        "scheduled_iterations": model._scheduled_iterations,
        "reason": vars(model).get("_reason"),
        "explained": vars(model).get("_explained"),
        "feature_names": None if names is None else list(names),
    }
    arrays = {"dictionary": model.components_, "energy": state.energy}
    return {"parameters": parameters, "fitted": fitted}, {
        **arrays,
        **columns_to_arrays(model.history_.to_dict()),
    }


def from_contents(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ManifoldDictionaryLearning:
    """The estimator that `contents` took apart; errors are those of a damaged file (`damage_named`).

    Parameters
    ----------
    meta : mapping
    arrays : mapping of str to array

    Returns
    -------
    ManifoldDictionaryLearning
    """
    parameters = {str(name): restore(value) for name, value in meta["parameters"].items()}
    model = ManifoldDictionaryLearning(**parameters)
    fitted = meta["fitted"]
    if fitted is None:
        return model
    components = as_dictionary(arrays["dictionary"].T).T
    columns = arrays_to_columns(arrays)
    model.history_ = History(condition="kappa" in columns, coherence="coherence" in columns)
    model.history_.restore(columns)
    model._state = online_state(fitted, arrays, len(components))
    model._rng = json_to_generator(fitted["rng"])
    model._scheduled_iterations = int(fitted["scheduled_iterations"])
    model.components_ = np.ascontiguousarray(components)
    model.n_iter_, model.n_samples_seen_ = int(fitted["n_iter"]), model._state.seen
    model.n_features_in_ = components.shape[1]
    if fitted["reason"] is not None:
        model._reason = str(fitted["reason"])
        _ = model.reason_  # raises a KeyError if there is no such reason
    if fitted["explained"] is not None:
        model._explained = float(fitted["explained"])
    if fitted["feature_names"] is not None:
        model.feature_names_in_ = np.array([str(name) for name in fitted["feature_names"]], dtype=object)
    return model


def _described(name: str, value: Any) -> Any:
    description = describe(value)
    if name == "callbacks" and len(value):
        raise ValueError("callbacks are not stored: set_params(callbacks=()) before saving the estimator.")
    if _holds_text(description):
        raise ValueError(
            f"{name}={shown(description)} cannot be stored: it is no number, text or registered component. "
            "Register it as a plug-in (manifold_dl.plugins), or store the estimator with pickle."
        )
    return description


def _holds_text(description: Any) -> bool:
    """Whether anything in a description is text that stands for an object."""
    if is_text(description):
        return True
    if isinstance(description, dict):
        return any(_holds_text(item) for item in description.values())
    return isinstance(description, list) and any(_holds_text(item) for item in description)
