"""The protocol of a sparse coder: what every coder has, and what it may have besides, with defaults.

The learning loop, the estimator and `images` call a coder through `calling.run_coder`, which passes on those
keywords that its `encode` names. The functions below are the one place where other members are looked up, and
`diagnostics.check_coder` tests whether the attributes are true.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np


class SparseCoder(Protocol):
    """Anything with a method `encode`; `FullSparseCoder` lists what a coder may have besides.

    Examples
    --------
    >>> class Correlations:
    ...     def encode(self, signals, dictionary):
    ...         return dictionary.T @ signals
    >>> coder: SparseCoder = Correlations()
    """

    def encode(self, signals: np.ndarray, dictionary: np.ndarray) -> Any:
        """Codes of the columns of `signals`: (m×n, m×d) → csc_array (d×n).

        Parameters
        ----------
        signals : m×n array
            A signal in every column.
        dictionary : m×d array
            An atom in every column.

        Returns
        -------
        csc_array
            d×n, of the dtype of the signals. Other sparse formats and dense arrays are converted.
        """


class FullSparseCoder(SparseCoder, Protocol):
    """All that a coder may have. What it does not have gets the default.

    Attributes
    ----------
    optimal_on_support : bool
        Whether the codes are a least-squares fit on their own support. False by default.
    scale_equivariant : bool
        Whether signals multiplied by c get codes multiplied by c. False by default.
    numbers_atoms : bool
        Whether the coder names atoms by number, so that their order matters. False by default.
    nonnegative : bool
        Whether no code is negative. False by default.
    """

    optimal_on_support: bool
    scale_equivariant: bool
    numbers_atoms: bool
    nonnegative: bool

    def encode(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        *,
        threads: int | None = None,
        codes: Any = None,
        iteration: int | None = None,
        weights: np.ndarray | None = None,
    ) -> Any:
        """Codes of the columns of `signals`. An `encode` without a keyword is called without it.

        One without `weights` is refused where there are any: it would take missing entries for data.

        Parameters
        ----------
        signals : m×n array
            A signal in every column.
        dictionary : m×d array
            An atom in every column, of any norm.
        threads : int, optional
            How many threads to use: all processors by default. The codes do not depend on it.
        codes : csc_array, optional
            The last codes of the same signals (d×n, sparse or dense), where a coder that iterates starts.
            None outside of a learning loop and in its first iteration.
        iteration : int, optional
            The outer iteration of the learning loop, from 0. None outside of a loop.
        weights : array of length n or m×n array, optional
            Numbers ≥ 0. One per entry multiplies the squared error of that entry; 0 marks a missing entry,
            which may hold anything. In the learning loop the signals are zero there. One per signal does not
            change its codes, unless it is 0 or the penalty depends on all signals (`RmsLasso`). None if all
            are 1.

        Returns
        -------
        csc_array
            d×n, of the dtype of the signals.
        """


def is_coder(coder: Any) -> bool:
    """Whether an object has what every coder has; a class has not been made into one yet."""
    return hasattr(coder, "encode") and not isinstance(coder, type)


def parameter_of(coder: Any, name: str) -> Any:
    """A parameter of any coder, such as `sparsity` or `alpha`; None if it has none of that name."""
    return getattr(coder, name, None)


class CoderProperties(NamedTuple):
    """What a coder states about its codes: the attributes of `FullSparseCoder`, with their defaults."""

    optimal_on_support: bool = False
    scale_equivariant: bool = False
    numbers_atoms: bool = False
    nonnegative: bool = False


def properties_of(coder: Any) -> CoderProperties:
    """What any coder states about its codes.

    Parameters
    ----------
    coder : SparseCoder
        Its attributes may be those of its class, or properties.

    Returns
    -------
    CoderProperties
        False for every attribute that it does not have.

    Examples
    --------
    >>> from manifold_dl.coders import OMP
    >>> properties_of(OMP(sparsity=3))
    CoderProperties(optimal_on_support=True, scale_equivariant=True, numbers_atoms=False, nonnegative=False)
    """
    return CoderProperties(*(bool(getattr(coder, name, False)) for name in CoderProperties._fields))
