"""When a run has converged: its loss has not changed for some iterations in a row."""

from dataclasses import dataclass

LIMIT = 3  # iterations without change that mean convergence


@dataclass
class Stagnation:
    """Counts the iterations in a row that did not change the loss.

    Parameters
    ----------
    tol : float
        A change of at most this fraction of the loss is none. 0 means that a run never converges.
    count : int
        The iterations without change so far.
    last_loss : float, optional
        The loss of the iteration before.

    Examples
    --------
    >>> stagnation = Stagnation(tol=0.1)
    >>> for loss in [4.0, 2.0, 1.99, 1.98, 1.97]:
    ...     stagnation.observe(loss)
    >>> stagnation.count, stagnation.has_converged
    (3, True)
    """

    tol: float
    count: int = 0
    last_loss: float | None = None

    def observe(self, loss: float, is_settled: bool = True) -> None:
        """Compare a loss with the one before.

        Parameters
        ----------
        loss : float
        is_settled : bool
            False if the loss will change for another reason: a ridge that is still to fall, new atoms.
        """
        self.count = self.count + 1 if is_settled and self._is_unchanged(loss) else 0
        self.last_loss = loss

    @property
    def has_converged(self) -> bool:
        """Whether the loss has stayed the same for long enough."""
        return self.count >= LIMIT

    def _is_unchanged(self, loss: float) -> bool:
        before = self.last_loss
        return self.tol > 0 and before is not None and abs(before - loss) <= self.tol * before
