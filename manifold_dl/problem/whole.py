"""The whole dictionary and all signals, of which the problem of a set I of atoms is a part.

`DictionaryProblem` reads the units of the signals here, and puts the atoms I into the dictionary;
`support_problem.py` adds the support of all atoms.
"""

from dataclasses import dataclass

import numpy as np

from manifold_dl.engines.weights import WeightedSignals


@dataclass(frozen=True, eq=False)
class WholeDictionary:
    """The whole dictionary and the signals that a set I of atoms is part of.

    Attributes
    ----------
    n_atoms : int
        d.
    dictionary : m×d array or None
        None only if I has all atoms.
    signals : WeightedSignals
        Y, in units of 2^exponent, with its energy and its weights.
    """

    n_atoms: int
    dictionary: np.ndarray | None
    signals: WeightedSignals

    @property
    def scale(self) -> float:
        """‖Y‖², with weights Σ w y², in units of 4^exponent."""
        return self.signals.energy

    @property
    def exponent(self) -> int:
        """The signals were divided by 2^exponent."""
        return self.signals.exponent

    @property
    def mean_energy(self) -> float:
        """‖Y‖²/n, the mean energy of a signal."""
        return self.signals.mean_energy

    def dictionary_with(self, atoms: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The whole m×d dictionary with the atoms I taken from `point`."""
        if self.dictionary is None:
            whole = np.empty_like(point)
        else:
            whole = self.dictionary.astype(np.result_type(self.dictionary, point))
        whole[:, atoms] = point
        return whole
