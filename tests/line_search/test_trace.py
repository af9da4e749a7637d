"""Records of line searches."""

import numpy as np
from search_cases import LINE

from manifold_dl.line_search import GoldenSection, WolfeSearch, trace


def test_trace_collects_in_the_innermost_block_only():
    args = lambda x: (x[0] - 3) ** 2, LINE, np.zeros(1), np.ones(1), 9.0, -6.0
    with trace() as outer:
        GoldenSection().search(*args)
        with trace() as inner:
            step, _ = WolfeSearch().search(*args)
    WolfeSearch().search(*args)
    assert [s.method for s in outer] == ["GoldenSection"]
    assert [s.method for s in inner] == ["WolfeSearch"]
    record = inner[0]
    assert (record.f0, record.slope, record.norm, record.t) == (9.0, -6.0, 1.0, step)
    assert record.t in dict(record.probes)
