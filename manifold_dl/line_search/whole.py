"""The searches, compiled together with the φ of a dictionary: one call of compiled code a search.

The same generators as everywhere, `golden_section` and `cubic_search`; only who goes on with them is another.
"""

import math
import sys

from manifold_dl.kernels.compiled_walk import ask
from manifold_dl.kernels.compiling import compiled_to_the_letter

from .cubic import cubic_search
from .golden import golden_section

SMALLEST = sys.float_info.min


@compiled_to_the_letter
def whole_golden_section(path, frame, probes, t, rounding, width):
    n, lowest = 0, 0
    for t in golden_section(probes[0], probes[1], probes[2], t, rounding, width):
        if n + 1 == probes.shape[1] or t < SMALLEST:
            break
        n += 1
        if not _probe(path, frame, probes, n, t, False):
            return -n, 0
        if probes[1, n] < probes[1, lowest]:
            lowest = n
    return n, lowest


@compiled_to_the_letter
def whole_cubic_search(path, frame, probes, t, rounding, sufficient_decrease, curvature):
    n, lowest = 0, 0
    for t in cubic_search(probes[0], probes[1], probes[2], t, rounding, sufficient_decrease, curvature):
        if n + 1 == probes.shape[1] or t < SMALLEST:
            break
        n += 1
        if not _probe(path, frame, probes, n, t, True):
            return -n, 0
        if probes[1, n] < probes[1, lowest]:
            lowest = n
    return n, lowest


@compiled_to_the_letter
def _probe(path, frame, probes, n, t, with_slope):
    """Write down φ(t) as the n-th probe. False if that takes more than compiled code."""
    moved, gain, slope, n_bad = ask(path, t, with_slope)
    constant, base, unit = frame
    value = constant + (base + moved + gain)
    probes[0, n], probes[1, n], probes[2, n] = t, value / unit, slope / unit
    probes[3, n], probes[4, n] = moved, gain
    return n_bad == 0 and math.isfinite(value) and math.isfinite(slope)
