"""`Lines` alone: representatives do not matter, and Pymanopt's Grassmannians agree."""

import numpy as np
import pytest
from manifold_samples import ROUNDING, SHAPES, angles, up_to_signs, within_reach
from pymanopt.manifolds import Grassmann

from manifold_dl.manifolds import (
    Lines,
    Spheres,
)


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def lines(request):
    return Lines(*request.param)


def test_lines_agree_with_pymanopts_grassmannians(lines, rng):
    m, k = lines.random_point(rng).shape
    reference = Grassmann(m, 1, k=k + 1)  # one more, because k = 1 has another layout there
    x, y = Lines(m, k + 1).random_point(rng), Lines(m, k + 1).random_point(rng)
    stacked = lambda array: array.T[:, :, np.newaxis]
    lines = Lines(m, k + 1)
    V = within_reach(lines, x, rng)
    # As for the spheres: the reference's arccos and tangents lose digits like 1/sin θ and 1/cos θ.
    tolerance = 1e-11
    assert lines.dist(x, y) == pytest.approx(reference.dist(stacked(x), stacked(y)), rel=tolerance)
    np.testing.assert_allclose(
        lines.log(x, y), reference.log(stacked(x), stacked(y))[:, :, 0].T, atol=tolerance
    )
    moved = lines.exp(x, V)
    theirs = reference.exp(stacked(x), stacked(V))[:, :, 0].T  # its QR picks the signs
    np.testing.assert_allclose(up_to_signs(theirs, moved), moved, atol=tolerance)
    assert lines.dim == reference.dim


def test_lines_do_not_depend_on_their_representatives(lines, rng):
    a, b = lines.random_point(rng), lines.random_point(rng)
    v = within_reach(lines, a, rng)
    s, t = (rng.choice([-1.0, 1.0], size=a.shape[1]) for _ in range(2))  # other representatives, a s and b t
    assert lines.dist(a * s, b * t) == lines.dist(a, b)
    assert lines.dist(a, a * s) == 0
    np.testing.assert_allclose(lines.exp(a * s, v * s), lines.exp(a, v) * s, atol=ROUNDING)
    np.testing.assert_allclose(lines.log(a * s, b * t), lines.log(a, b) * s, atol=ROUNDING)
    np.testing.assert_allclose(
        lines.transport(a * s, b * t, v * s), lines.transport(a, b, v) * t, atol=ROUNDING
    )
    assert lines.dist(lines.pair_mean(a * s, b * t), lines.pair_mean(a, b)) == pytest.approx(0, abs=ROUNDING)


def test_lines_are_never_more_than_a_right_angle_apart(lines, rng):
    a, b = lines.random_point(rng), lines.random_point(rng)
    assert angles(lines.log(a, b)).max() <= np.pi / 2 * (1 + 1e-15)
    assert lines.dist(a, b) <= Spheres(*a.shape).dist(a, b)
    assert lines.typical_dist == pytest.approx(np.pi / 2 * np.sqrt(a.shape[1]))


def test_log_and_pair_mean_of_orthogonal_lines():
    lines = Lines(2, 1)
    x, y = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    assert lines.dist(x, y) == pytest.approx(np.pi / 2, rel=1e-15)
    assert lines.dist(lines.exp(x, lines.log(x, y)), y) == pytest.approx(0, abs=1e-15)
    assert lines.dist(lines.pair_mean(x, y), x) == pytest.approx(np.pi / 4, rel=1e-15)
