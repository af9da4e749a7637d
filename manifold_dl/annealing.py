"""Numbers that fall in the course of learning: for the ridge μ, or for the penalty of a coder."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sawtooth:
    """From `start` down to `end` by a constant factor, again and again, and zero in the end.

    Each tooth lets the wrong atoms go and look elsewhere, while those that are right come back to where
    they were.

    Parameters
    ----------
    start, end : float
        The first and the last value of a tooth.
    period : int
        Outer iterations of a tooth.
    until : int
        From this iteration on the value is zero.

    Examples
    --------
    >>> mu = Sawtooth(start=0.4, end=0.1, period=3, until=5)
    >>> [round(mu(t), 2) for t in range(7)]
    [0.4, 0.2, 0.1, 0.4, 0.2, 0.0, 0.0]
    """

    start: float
    end: float
    period: int
    until: int

    def __post_init__(self):
        if not 0 < self.end <= self.start < float("inf"):
            raise ValueError(f"start={self.start}, end={self.end}: a tooth falls from start to end, above 0.")
        if self.period < 2:
            raise ValueError(f"period={self.period}: a tooth has at least two iterations.")

    def __call__(self, iteration):
        if iteration >= self.until:
            return 0.0
        return self.start * (self.end / self.start) ** (iteration % self.period / (self.period - 1))
