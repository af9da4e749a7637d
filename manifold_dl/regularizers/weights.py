"""Validation of the weight of a penalty."""

import math
from numbers import Real
from typing import Any


def require_weight(weight: Any, name: str = "weight", positive: bool = False) -> None:
    """Raise a `ValueError` if a number cannot be a weight."""
    real = isinstance(weight, Real) and math.isfinite(weight)
    if not real or weight < 0 or (positive and weight == 0):
        allowed = "a finite number above 0" if positive else "a finite number of at least 0"
        raise ValueError(
            f"{name}={weight!r}: the {name} of a penalty is {allowed}; "
            "a negative one would reward what the penalty is there to prevent."
        )
