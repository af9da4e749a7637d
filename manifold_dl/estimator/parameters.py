"""Fields of components as parameters of an estimator: ``set_params(coder__sparsity=3)``, at any depth.

scikit-learn reads and sets the parameters of nested estimators; our components are frozen dataclasses.
The estimator inherits from `NestedParameters`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator


class NestedParameters(BaseEstimator):
    """An estimator whose parameters may be components, with fields that are parameters, too."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep : bool
            Also the fields of the components, as in ``coder__sparsity``.

        Returns
        -------
        dict
        """
        params = super().get_params(deep=deep)
        if deep:
            for name in self._get_param_names():
                params |= {f"{name}__{field}": value for field, value in nested_fields(getattr(self, name))}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, or fields of the components, as in ``coder__sparsity``.

        Parameters
        ----------
        **params
            New values by the names of `get_params`.

        Returns
        -------
        self
        """
        super().set_params(**{key: value for key, value in params.items() if "__" not in key})
        changes: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, field = key.partition("__")
            if field and name not in self._get_param_names():
                super().set_params(**{key: value})  # refuses it
            if field:
                changes.setdefault(name, {})[field] = value
        for name, fields_of_component in changes.items():
            setattr(self, name, with_fields(getattr(self, name), fields_of_component, name))
        return self


def nested_fields(part: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of a component's fields, those of its components included.

    Parameters
    ----------
    part
        A component that is a dataclass; anything else has no fields.

    Yields
    ------
    name, value

    Examples
    --------
    >>> from manifold_dl import KSVD
    >>> dict(nested_fields(KSVD()))["schedule__order"]
    'natural'
    """
    if is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            if field.init:
                value = getattr(part, field.name)
                yield field.name, value
                yield from ((f"{field.name}__{name}", inner) for name, inner in nested_fields(value))


def with_fields(part: Any, changes: Mapping[str, Any], name: str) -> Any:
    """The component with some fields changed; a new one, since components are frozen.

    Parameters
    ----------
    part
        A component: a dataclass, or an object with a method `set_params`, as scikit-learn's estimators have.
    changes : mapping
        New values by the names of `nested_fields`.
    name : str
        The parameter that holds the component, for the error.

    Returns
    -------
    component

    Raises
    ------
    ValueError
        If there is no such field.

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> with_fields(OMP(sparsity=3), {"sparsity": 5}, "coder")
    OMP(sparsity=5, tol=None, nonnegative=False)
    """
    if hasattr(part, "set_params"):  # scikit-learn's own convention for what has parameters
        return part.set_params(**changes)
    known = [field for field, _ in nested_fields(part) if "__" not in field]
    whole: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
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
        field: with_fields(getattr(part, field), inner, f"{name}__{field}") for field, inner in inside.items()
    }
    return replace(part, **deeper)
