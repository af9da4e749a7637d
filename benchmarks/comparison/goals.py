"""What this package aims at beside others, each computed from the rows of one run of the tasks."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from cold_start import FIRST_CALLS

from comparison.results import Row, values
from comparison.tasks import coding, denoising, patches, scaling

OURS, SPAMS = "ours, SimCO (default)", "SPAMS, OMP"
PICTURES = "ours, presets.images('best')"
Rows = dict[str, list[Row]]


class Goal(NamedTuple):
    """A number of a run, and the bound that it should keep."""

    words: str
    measured: Callable[[Rows], float | None]
    bound: float
    at_least: bool = False
    digits: str = ".2f"

    def value(self, rows: Rows) -> float | None:
        """None where something was not measured."""
        try:
            return self.measured(rows)
        except (
            ValueError,
            IndexError,
            ZeroDivisionError,
            TypeError,
        ):  # of an empty list, or a missing number
            return None

    def bound_words(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"

    def verdict(self, value: float | None) -> str:
        """The number, in bold where the goal is missed."""
        if value is None:
            return "–"
        holds = value >= self.bound if self.at_least else value <= self.bound
        return format(value, self.digits) if holds else f"**{value:{self.digits}}**"


def time_to_error(rows: Rows, quality: str = "error", ours: str = OURS) -> float:
    """Our seconds to the error of SPAMS after ten passes, relative to its seconds, in single precision."""
    theirs = {"method": SPAMS, "dtype": "float32", "passes": patches.TEN}
    seconds, error = (values(rows["patches"], q, **theirs)[0] for q in ("seconds", quality))
    curve = patches.curve(rows["patches"], ours, "float32", quality)
    return min(s for s, e in curve if e <= error) / seconds


def error_after_time(rows: Rows, quality: str = "error", ours: str = OURS) -> float:
    """Per cent by which our error is below that of SPAMS, within the time of its ten passes."""
    theirs = {"method": SPAMS, "dtype": "float64", "passes": patches.TEN}
    seconds, error = (values(rows["patches"], q, **theirs)[0] for q in ("seconds", quality))
    found = patches.curve(rows["patches"], ours, "float64", quality)
    return 100 * (1 - min(e for s, e in found if s <= seconds) / error)


def psnr(rows: Rows, method: str, sigma: int, n_patches: int, quality: str = "psnr") -> float | None:
    chosen = {"method": method, "sigma": sigma, "patches": n_patches}
    return denoising.of_all_pictures(rows["denoising"], quality, **chosen)


def best_peer(rows: Rows, sigma: int) -> float:
    """The highest PSNR of a learned dictionary of another library."""
    names = {row["method"] for row in rows["denoising"] if row["cell"]["patches"] == 40_000}
    others = [name for name in names if not name.startswith("ours")]
    return max(p for name in others if (p := psnr(rows, name, sigma, 40_000)) is not None)


def above_peers(sigma: int) -> Callable[[Rows], float]:
    return lambda rows: psnr(rows, PICTURES, sigma, 40_000) - best_peer(rows, sigma)


def above_bm3d(sigma: int) -> Callable[[Rows], float]:
    return lambda rows: psnr(rows, PICTURES, sigma, 40_000) - psnr(rows, "BM3D", sigma, 0)


def time_of_bm3d(rows: Rows) -> float:
    """Our CPU seconds per picture relative to those of BM3D, at σ = 25."""
    return psnr(rows, PICTURES, 25, 40_000, "seconds") / psnr(rows, "BM3D", 25, 0, "seconds")


def gap_to_bm3d(rows: Rows) -> float:
    """The fraction of the distance from the best peer's dictionary to BM3D that ours covers, at σ = 25."""
    peer = best_peer(rows, 25)
    return (psnr(rows, PICTURES, 25, 40_000) - peer) / (psnr(rows, "BM3D", 25, 0) - peer)


def speed(kind: str, dtype: str) -> Callable[[Rows], float]:
    """How many times as fast as SPAMS our OMP is on patches."""

    def ratio(rows: Rows) -> float:
        cell = {"data": "patches", "kind": kind, "dtype": dtype}
        return coding.rate(rows["coding"], "ours, OMP", **cell) / coding.rate(
            rows["coding"], "SPAMS, omp", **cell
        )

    return ratio


def update(rows: Rows, axis: str, quality: str = "seconds", method: str = OURS) -> float:
    return min(values(rows["scaling"], quality, method=method, measured="update", axis=axis))


def growth_with_n(rows: Rows) -> float:
    sizes, seconds = scaling.points(rows["scaling"], OURS, "n")
    return scaling.slope(sizes[-2:], seconds[-2:])


def growth_with_d(rows: Rows) -> float:
    return float(np.log2(update(rows, "d 1024") / update(rows, "d 512")))


def memory(rows: Rows) -> float:
    return max(values(rows["scaling"], "memory", method=OURS, n=10**6))


def first_call(name: str) -> Callable[[Rows], float]:
    return lambda rows: min(values(rows["cold_start"], "seconds", method=f"manifold_dl: {name}"))


FORWARD = "ours, SimCO, forward selection"
GOLDEN = "ours, SimCO, golden section"
GOALS = [
    Goal("patches: seconds to the error of SPAMS (float32, ten passes), relative to its own, float32",
         time_to_error, 0.3),
    Goal("the same, errors of codes by forward selection, by which SPAMS learns",
         lambda rows: time_to_error(rows, "error_forward"), 0.3),
    Goal("the same, ours learned by forward selection, too",
         lambda rows: time_to_error(rows, "error_forward", FORWARD), 0.3),
    Goal("patches: % of error below SPAMS after its ten passes, float64", error_after_time, 5, True),
    Goal("the same, errors of codes by forward selection",
         lambda rows: error_after_time(rows, "error_forward"), 5, True),
    Goal("the same, ours learned by forward selection, too",
         lambda rows: error_after_time(rows, "error_forward", FORWARD), 5, True),
    Goal("denoising, σ = 25, 40,000 patches: dB above the best other dictionary",
         above_peers(25), 0.09, True),
    Goal("the same: CPU seconds per picture", lambda rows: psnr(rows, PICTURES, 25, 40_000, "seconds"), 2),
    Goal("the same: fraction of the gap between the best other dictionary and BM3D", gap_to_bm3d, 0.5, True),
    Goal("the same: CPU seconds relative to BM3D", time_of_bm3d, 0.2),
    Goal("denoising, σ = 15: dB above the best other dictionary", above_peers(15), 0, True),
    Goal("the same: dB above BM3D", above_bm3d(15), 0, True),
    Goal("denoising, σ = 50: dB above the best other dictionary", above_peers(50), 0, True),
    Goal("the same: dB above BM3D", above_bm3d(50), 0, True),
    Goal("OMP, S = 5, float64: times the speed of SPAMS", speed("sparsity", "float64"), 3, True),
    Goal("OMP, S = 5, float32: times the speed of SPAMS", speed("sparsity", "float32"), 3, True),
    Goal("OMP, error-constrained, float64: times the speed of SPAMS", speed("error", "float64"), 2, True),
    Goal("OMP, error-constrained, float32: times the speed of SPAMS", speed("error", "float32"), 2, True),
    Goal("update at 16×32, n = 78, golden section: ms",
         lambda rows: 1000 * update(rows, "small", method=GOLDEN), 0.3),
    Goal("the same, relative to K-SVD",
         lambda rows: update(rows, "small", method=GOLDEN) / update(rows, "small", method="ours, K-SVD"), 1),
    Goal("growth with n, 10⁵ to 10⁶: slope of a pass", growth_with_n, 1.05),
    Goal("peak memory at n = 10⁶, relative to signals, dictionary and codes", memory, 1.5),
    Goal("768×4096, S = 20, n = 4,000, float32: update relative to OMP",
         lambda rows: update(rows, "embeddings") / update(rows, "embeddings", "omp"), 2),
    Goal("the same: peak memory relative to signals, dictionary and codes",
         lambda rows: update(rows, "embeddings", "memory"), 2),
    Goal("growth with d, 512 to 1,024: slope of an update", growth_with_d, 1.1),
    *(Goal(f"first call of {name}, nothing compiled: CPU seconds", first_call(name), call.bound, digits=".1f")
      for name, call in FIRST_CALLS.items()),
]  # fmt: skip
