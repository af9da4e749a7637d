"""Line searchers: the paper's steps by hand, SciPy's minima, kinks and singularities, fields."""

import copy
import math

import numpy as np
import pytest
from pymanopt.manifolds import Euclidean
from scipy.optimize import minimize_scalar
from search_cases import (
    INF,
    LINE,
    NAN,
    SMOOTH,
    Restriction,
    every_searcher,
    search_line,
    with_and_without_slope,
)

from manifold_dl.line_search import GoldenSection, WolfeSearch, trace
from manifold_dl.manifolds import Spheres


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("method", ["golden", "brent"])
def test_golden_section_agrees_with_scipy(name, method):
    f, df, (low, high) = SMOOTH[name]
    expected = minimize_scalar(f, bracket=(low, 1.0 if f(1.0) < f(low) else 0.5, high), method=method).x
    found, _ = search_line(GoldenSection(width=1e-7), f, df)
    # A bracket is at most 3 times its minimiser, and both searches stop a little above 1e-8, the square root
    # of the machine precision, where rounding hides the minimum.
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("minimiser", "bracketing", "shrinking"),
    [
        # φ(0) > φ(0.38) > φ(0.62) ≤ φ(1): bracketed. Then steps 7, 8, 8, 7.
        (0.55, [0.381966, 0.618034, 1.0], [0.763932, 0.527864, 0.472136, 0.562306]),
        # Step 3 takes t4 to 0.38, because φ there is above φ(0), step 4 to 0.24 and 0.15. φ(1) is not needed.
        (0.1, [0.381966, 0.145898, 0.236068, 0.090170, 0.055728], [0.111456, 0.077014]),
        # Step 5, twice: t4 = 1/c and 1/c².
        (2.0, [0.381966, 0.618034, 1.0, 1.618034, 2.618034], [2.0, 2.236068]),
    ],
)
def test_golden_section_takes_the_steps_of_the_paper(minimiser, bracketing, shrinking):
    _, record = search_line(
        GoldenSection(t4=1), lambda t: (t - minimiser) ** 2, lambda t: 2 * (t - minimiser)
    )
    expected = bracketing + shrinking
    # Worked out by hand to six decimals.
    assert [t for t, _ in record.probes][: len(expected)] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-6])
def test_width_is_the_accuracy_of_the_step(width):
    searcher = GoldenSection(width=width)
    found, record = search_line(searcher, lambda t: (t - 0.55) ** 2, lambda t: 2 * (t - 0.55))
    assert abs(found - 0.55) <= width  # the bracket is (0, 1)
    # Three probes to bracket, then one for every factor c, and one on the way.
    assert len(record.probes) <= 4 + math.log(width) / math.log((math.sqrt(5) - 1) / 2)


def test_the_first_step_may_be_left_to_the_manifold():
    class Nowhere(Euclidean):
        @property
        def typical_dist(self):
            raise NotImplementedError

    # Four numbers: both the typical distance and the root of the dimension are 2.
    for manifold in (Euclidean(4), Nowhere(4)):
        x, d = np.zeros(4), np.array([0.0, 0.0, 0.0, 5.0])
        with trace() as searches:
            WolfeSearch(first_step=None).search(lambda y: (y[3] - 3) ** 2, manifold, x, d, f0=9, df0=-30)
        assert searches[0].probes[0][0] * 5 == 2 / 8
    # On spheres, π√k for k atoms.
    assert Spheres(3, 16).typical_dist == pytest.approx(4 * np.pi)


def test_the_first_step_of_the_manifold_leaves_single_precision_alone():
    x = Spheres(3, 4).random_point(0).astype(np.float32)
    d = Spheres(3, 4).random_tangent_vector(x, rng=1).astype(np.float32)
    with trace() as searches:
        WolfeSearch(first_step=None).search(
            lambda y: float(np.sum((y - x - d) ** 2)), Spheres(3, 4), x, d, f0=1.0, df0=-2.0
        )
    # A NumPy number times a vector in single precision is one in double, and another after it was stored.
    assert all(type(t) is float for t, _ in searches[0].probes)


@every_searcher
@with_and_without_slope
@pytest.mark.parametrize("far", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("norm", [1e-6, 1.0, 1e6])
def test_the_minimum_may_be_far_from_the_first_step(searcher, slope, far, norm):
    def f(t):
        u = t / far - 1
        return u * u + u**4

    found, record = search_line(
        searcher, f, lambda t: (2 + 4 * (t / far - 1) ** 2) * (t / far - 1) / far, slope=slope, d=norm
    )
    # Golden section: 1e-3 of a bracket up to 2.6 times t. Cubic: a slope of 0.05 · 6 where φ″ is 2 or more.
    assert found == pytest.approx(far, rel=3e-3 if isinstance(searcher, GoldenSection) else 0.15)
    assert len(record.probes) <= 60


@every_searcher
@with_and_without_slope
def test_several_minima_end_in_one_of_them(searcher, slope):
    def f(t):
        return 0.02 * (t - 10) ** 2 + math.cos(3 * t)

    def df(t):
        return 0.04 * (t - 10) - 3 * math.sin(3 * t)

    for first in np.geomspace(0.01, 100, 40):
        start = (
            GoldenSection(t4=first) if isinstance(searcher, GoldenSection) else WolfeSearch(first_step=first)
        )
        found, record = search_line(start, f, df, slope=slope)
        assert f(found) == min(value for _, value in record.probes) < f(0)
        # Every minimum that lies below φ(0) = 3 is at least 1 below it.
        assert f(found) < f(0) - 0.9


AWKWARD = {
    "nan beyond": (lambda t: NAN if t > 0.01 else (t - 0.007) ** 2, lambda t: 2 * (t - 0.007)),
    "infinite beyond": (lambda t: INF if t > 1e-6 else -t, lambda t: -1.0),
    "minus infinity beyond": (lambda t: -INF if t > 0.3 else (t - 0.2) ** 2, lambda t: 2 * (t - 0.2)),
    "a hole of nan": (lambda t: NAN if 0.3 < t < 0.7 else (t - 0.9) ** 2, lambda t: 2 * (t - 0.9)),
    "kink": (lambda t: abs(t - 0.123), lambda t: math.copysign(1.0, t - 0.123)),
    "staircase": (lambda t: math.floor(8 * abs(t - 0.77)), lambda t: -8.0),
    "wall": (lambda t: -t if t < 0.4 else 1e300, lambda t: -1.0),
    "never ends": (lambda t: -t, lambda t: -1.0),
    "levels off": (lambda t: -math.tanh(t), lambda t: -1 / math.cosh(min(t, 300.0)) ** 2),
    "overflows": (lambda t: np.float64(t) ** 90 - t, lambda t: np.float64(90) * t**89 - 1),
    "raises": (lambda t: math.exp(1e4 * t) - 2e4 * t, lambda t: 1e4 * math.exp(min(1e4 * t, 700)) - 2e4),
    "slope undefined": (lambda t: (t - 0.7) ** 2, lambda t: -1.4 if t == 0 else NAN),
    "wrong slope": (lambda t: (t - 0.7) ** 2, lambda t: -1e3),
}


@every_searcher
@with_and_without_slope
@pytest.mark.parametrize("name", AWKWARD)
def test_functions_with_kinks_or_singularities_still_descend(searcher, slope, name):
    f, df = AWKWARD[name]
    found, record = search_line(searcher, f, df, slope=slope)
    ts = [t for t, _ in record.probes]
    assert found > 0
    assert len(ts) == len(set(ts)) <= searcher.max_probes
    assert all(value > -INF and not math.isnan(value) for _, value in record.probes)
    assert f(found) == min(value for _, value in record.probes)


@every_searcher
@with_and_without_slope
@pytest.mark.parametrize(
    "f",
    [
        lambda t: 1.0,
        lambda t: 1.0 + t,
        lambda t: 1.0 if t == 0 else NAN,
        lambda t: 1.0 if t == 0 else INF,
        lambda t: 0.0 if t == 0 else 5e-324,
    ],
    ids=["flat", "rises", "nan", "infinite", "above zero"],
)
def test_no_decrease_returns_the_same_object(searcher, slope, f):
    def objective(x):
        return f(x[0])

    if slope:
        objective.restrict = lambda x, d: Restriction(lambda t: f(t), lambda t: -1.0)
    start = np.zeros(1)
    with trace() as searches:
        step, x = searcher.search(objective, LINE, start, np.ones(1), f(0), -1.0)
    assert step == 0.0
    assert x is start
    assert all(len(s.probes) <= searcher.max_probes and s.t == 0 for s in searches)


@every_searcher
@pytest.mark.parametrize(
    ("d", "f0", "df0"),
    [
        (0.0, 1.0, 0.0),
        (0.0, 1.0, -1.0),
        (1.0, 1.0, 0.0),
        (1.0, 1.0, 2.0),
        (1.0, NAN, -1.0),
        (1.0, INF, -1.0),
        (1.0, 1.0, NAN),
        (1.0, 1.0, -INF),
        (NAN, 1.0, -1.0),
        (INF, 1.0, -1.0),
        (5e-324, 1.0, -1.0),
    ],
)
def test_nothing_is_probed_without_a_descent_direction(searcher, d, f0, df0):
    def objective(x):
        raise AssertionError("the objective was evaluated")

    start = np.zeros(1)
    with trace() as searches:
        step, x = searcher.search(objective, LINE, start, np.array([d]), f0, df0)
    assert (step, searches[0].probes, searches[0].t) == (0.0, [], 0.0)
    assert x is start


@pytest.mark.parametrize("scale", [None, 1e12])
def test_a_slope_below_g_min_counts_as_zero(scale):
    def objective(x):
        return 1 + x[0] ** 2

    if scale is not None:
        objective.scale = scale
    start = np.array([-1e-3])
    # The slope is 2e-3 along a direction of any length: above 1e-14 |f0| but below 1e-14 · 1e12.
    for norm in [1e-3, 1.0, 1e3]:
        args = objective, LINE, start, np.array([norm]), objective(start), -2e-3 * norm
        assert (GoldenSection(g_min=1e-14).search(*args)[0] > 0) == (scale is None)
        assert GoldenSection(g_min=0).search(*args)[0] > 0


@every_searcher
def test_scaling_the_cost_changes_nothing(searcher):
    def f(t):
        return math.cosh(t - 2)

    records = []
    for c in [2.0**-40, 1.0, 2.0**40]:  # powers of two leave every digit as it is
        # The gradient, and with it a steepest descent direction, is c times as long.
        step, record = search_line(
            searcher, lambda t, c=c: c * f(t), lambda t, c=c: c * math.sinh(t - 2), d=c * math.sinh(2)
        )
        records.append((step, [value / c for _, value in record.probes]))
    assert records[0] == records[1] == records[2]


# --- The searchers as objects ---


def test_searchers_print_compare_and_copy_by_their_fields():
    golden, geodesic = GoldenSection(t4=0.5), WolfeSearch(curvature=0.2)
    assert repr(golden) == "GoldenSection(t4=0.5, g_min=1e-14, width=0.001, max_probes=100)"
    assert "curvature=0.2" in repr(geodesic)
    for searcher in (golden, geodesic):
        fresh, before = copy.deepcopy(searcher), repr(searcher)
        search_line(searcher, lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3))
        searcher.search(lambda x: (x[0] - 3) ** 2, LINE, np.zeros(1), np.ones(1), 9.0, -6.0)
        assert searcher == fresh == copy.deepcopy(searcher)
        assert repr(searcher) == before
    assert golden != GoldenSection()
    assert golden != geodesic


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GoldenSection(t4=0), "t4=0: "),
        (lambda: GoldenSection(t4=INF), "t4=inf: "),
        (lambda: GoldenSection(g_min=-1), "g_min=-1: "),
        (lambda: GoldenSection(g_min=NAN), "g_min=nan: "),
        (lambda: GoldenSection(width=0), "width=0 is outside"),
        (lambda: GoldenSection(width=1.5), "width=1.5 is outside"),
        (lambda: GoldenSection(max_probes=2), "max_probes=2: "),
        (lambda: WolfeSearch(curvature=1), "curvature=1: "),
        (lambda: WolfeSearch(sufficient_decrease=0.3), "sufficient_decrease=0.3, "),
        (lambda: WolfeSearch(first_step=-1), "first_step=-1: "),
        (lambda: WolfeSearch(max_probes=0), "max_probes=0: "),
    ],
)
def test_invalid_fields_are_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("make", [GoldenSection, WolfeSearch])
@pytest.mark.parametrize("probes", [3, 4, 10])
def test_max_probes_is_kept_and_the_best_one_returned(make, probes):
    found, record = search_line(
        make(max_probes=probes), lambda t: (t - 1e6) ** 4, lambda t: 4 * (t - 1e6) ** 3
    )
    assert len(record.probes) <= probes
    assert found == min(record.probes, key=lambda probe: probe[1])[0]


@every_searcher
def test_the_next_search_begins_where_the_last_one_ended(searcher):
    searcher = copy.deepcopy(searcher)
    counts = []
    for _ in range(2):
        with trace() as searches:
            searcher.search(lambda x: (x[0] - 1e5) ** 2, LINE, np.zeros(1), np.ones(1), 1e10, -2e5)
        counts.append(len(searches[0].probes))
    first, second = counts
    # Golden section grows by 1.6 a probe and needs 24 to come so far; the cubic extrapolates.
    assert second <= first - (20 if isinstance(searcher, GoldenSection) else 1)
    searcher.search(lambda x: 1.0, LINE, np.zeros(1), np.ones(1), 1.0, -1.0)  # a failure forgets
    with trace() as searches:
        searcher.search(lambda x: (x[0] - 1e5) ** 2, LINE, np.zeros(1), np.ones(1), 1e10, -2e5)
    assert len(searches[0].probes) == first


@every_searcher
def test_single_precision_stays_single_precision(searcher):
    def objective(x):
        return ((x - np.float32(3)) ** 2).sum()

    x = np.zeros(2, dtype=np.float32)
    d = np.full(2, 6, dtype=np.float32)
    step, new = copy.deepcopy(searcher).search(objective, Euclidean(2), x, d, objective(x), np.float32(-72))
    assert new.dtype == np.float32
    assert step == pytest.approx(3 * math.sqrt(2), rel=0.05)  # a twentieth of the slope may be left
