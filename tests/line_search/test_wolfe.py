"""The safeguarded cubic search against SciPy's minima."""

import pytest
from scipy.optimize import minimize_scalar
from search_cases import SMOOTH, search_line, with_and_without_slope

from manifold_dl.line_search import WolfeSearch


@pytest.mark.parametrize("name", SMOOTH)
@with_and_without_slope
def test_wolfe_search_agrees_with_scipy(name, slope):
    f, df, (low, high) = SMOOTH[name]
    expected = minimize_scalar(f, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    found, record = search_line(WolfeSearch(curvature=1e-3), f, df, slope=slope)
    # A thousandth of the slope leaves about a millionth of the decrease. An estimated slope may look like
    # zero where the true one is a few hundredths, at the price of so much of the decrease.
    assert f(found) - expected.fun <= (1e-5 if slope else 5e-2) * (f(0) - expected.fun)
    assert not slope or abs(df(found)) <= 1e-3 * abs(df(0))
    assert len(record.probes) <= 10
