"""The searches, compiled together with the φ of a dictionary: one call of compiled code a search.

The same generators as everywhere, `golden_section` and `cubic_search`; only who goes on with them is another.

Both take the arrays of `kernels.compiled_walk`, and `start`: φ(0) and φ′(0), whether to find slopes, what φ
is the sum of (a constant, the value at the start), and the unit of it all. The first three rows of `probes`
are what the generators look at: every t, φ and φ′. The others hold what a probe adds to the value at the
start.

They return how many probes there were, negative if the last one failed; the lowest t and its two parts of φ;
and what `land` finds there.
"""

import math
import sys

from manifold_dl.kernels.compiled_walk import ask, land, set_out
from manifold_dl.kernels.compiling import borrowed, compiled_into_callers, compiled_to_the_letter

from .cubic import cubic_search
from .golden import golden_section

SMALLEST = sys.float_info.min


@compiled_to_the_letter
def whole_golden_section(
    block, fitted, direction, mu, limits, codes, landing, start, probes, t, rounding, width
):
    phi = set_out(block, fitted, direction, mu, limits, codes)
    ts, values, slopes = borrowed(probes[0]), borrowed(probes[1]), borrowed(probes[2])
    search = golden_section(ts, values, slopes, t, rounding, width)
    n, lowest = _follow(search, phi, start, probes)
    n, t, moved, gain, value, n_bad = _end(block, fitted, direction, mu, limits, landing, probes, n, lowest)
    if lowest and len(codes):  # those of the last slope: there has been none
        n_bad += ask(phi, t, lowest > 0)[3]
    return n, t, moved, gain, value, n_bad


@compiled_to_the_letter
def whole_cubic_search(
    block, fitted, direction, mu, limits, codes, landing, start, probes, t, rounding, decrease, curvature
):
    phi = set_out(block, fitted, direction, mu, limits, codes)
    ts, values, slopes = borrowed(probes[0]), borrowed(probes[1]), borrowed(probes[2])
    search = cubic_search(ts, values, slopes, t, rounding, decrease, curvature)
    n, lowest = _follow(search, phi, start, probes)
    return _end(block, fitted, direction, mu, limits, landing, probes, n, lowest)


@compiled_into_callers
def _follow(search, phi, start, probes):
    """Probe where the search wants. How many probes, negative if the last one failed; which is the lowest."""
    probes[0, 0], probes[1, 0], probes[2, 0] = 0.0, start[0], start[1]
    n, lowest, most = 0, 0, probes.shape[1] - 1
    for t in search:
        if n == most or t < SMALLEST:
            break
        n += 1
        if not _probe(phi, start, probes, n, t):
            n, lowest = -n, 0
            break
        if probes[1, n] < probes[1, lowest]:
            lowest = n
    return n, lowest


@compiled_into_callers
def _probe(phi, start, probes, n, t):
    """Write down φ(t) as the n-th probe. False if that takes more than compiled code."""
    _, _, with_slope, constant, base, unit = start
    moved, gain, slope, n_bad = ask(phi, t, with_slope)
    value = constant + (base + moved + gain)
    probes[0, n], probes[1, n], probes[2, n] = t, value / unit, slope / unit
    probes[3, n], probes[4, n] = moved, gain
    return n_bad == 0 and math.isfinite(value) and math.isfinite(slope)


@compiled_into_callers
def _end(block, fitted, direction, mu, limits, landing, probes, n, lowest):
    value, n_bad, t = 0.0, 0, probes[0, lowest]
    if lowest:
        value, n_bad = land(block, fitted, direction, t, mu, limits, landing)
    return n, t, probes[3, lowest], probes[4, lowest], value, n_bad
