"""The progress of several passes over a picture, reported to callbacks.

`denoise` makes a `Progress`; `reconstruct` and `SimilarPatches` report to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from manifold_dl.learning.adapters import CallbackAdapter
from manifold_dl.learning.protocols import Callback


@dataclass(frozen=True)
class Progress:
    """The passes over a picture, and the callbacks to which they are reported.

    Attributes
    ----------
    callbacks : sequence of Callback
        Their method `reconstructed` is called with rows of pixels, those of all passes together.
    rows : int
        The rows of the picture.
    passes : int
        How many times the picture is put together.
    """

    callbacks: Sequence[Callback] = ()
    rows: int = 1
    passes: int = 1

    def report(self, number: int, done: int, total: int) -> None:
        """Tell the callbacks that `done` of `total` parts of a pass are done.

        Parameters
        ----------
        number : int
            The pass, from 0.
        done, total : int
        """
        rows = number * self.rows + round(self.rows * done / total)
        for callback in self.callbacks:
            CallbackAdapter(callback).reconstructed(rows, self.passes * self.rows)
