"""What a line search computes once, and the atoms at t: compiled, reference and definitions agree."""

import numpy as np
import pytest
from kernel_cases import (
    Case,
    K,
    assert_close,
    both_dtypes,
    both_kernels,
    both_ridges,
    compiled,
    reference,
)


@both_dtypes
def test_compiled_and_reference_geodesics_agree(dtype):
    case = Case(dtype)
    gradient = case.fit(reference, 0.1).gradient
    for gram in (None, case.gram):
        found, expected = (
            kernels.init_geodesic(case.atoms, case.direction, gradient, gram)
            for kernels in (compiled, reference)
        )
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == np.float64
            assert_close(ours, theirs, np.float64)
        assert found.angles[3] == 0 and not found.directions[3].any()  # the atom at rest


@both_dtypes
@both_ridges
def test_compiled_and_reference_products_of_a_search_agree(dtype, mu):
    case = Case(dtype)
    codes, U = case.fit(reference, mu).solutions.codes, case.units.astype(dtype)
    block = case.block(compiled)
    found, energy = compiled.precompute_products(block, case.atoms, case.gram, mu, codes, U)
    expected, expected_energy = reference.precompute_products(
        case.block(reference), case.atoms, case.gram, mu, codes, U
    )
    assert_close(energy, expected_energy, dtype)
    # The compiled products are in the order of the batches, signals with supports of one size side by side.
    batches = block.batches
    np.testing.assert_array_equal(np.sort(batches.signals), np.flatnonzero(np.diff(case.indptr)))
    for batch, begin in enumerate(batches.place[:-1]):
        for w, j in enumerate(batches.signals[batches.first[batch] : batches.first[batch + 1]]):
            entries = slice(case.indptr[j], case.indptr[j + 1])
            batched = slice(begin + w, batches.place[batch + 1], batches.widths[batch])
            np.testing.assert_array_equal(batches.indices[batched], case.indices[entries])
            np.testing.assert_array_equal(found.codes[batched], codes[entries])
            for name in ("at_atoms", "at_directions"):
                assert_close(getattr(found, name)[batched], getattr(expected, name)[entries], dtype)


@both_kernels
@both_ridges
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.3, -2.0])
def test_value_and_slope_at_t_are_those_of_the_objective_with_the_codes_kept(kernels, mu, t):
    case = Case()
    fit, block = case.fit(reference, mu), case.block(reference)
    geodesic, _, energy = case.geodesic(kernels, mu)

    def change(t):
        D = case.atoms * np.cos(case.angles * t)[:, None] + case.units * np.sin(case.angles * t)[:, None]
        values = [reference.evaluate_fixed(block, atoms, fit.solutions.codes)[0] for atoms in (D, case.atoms)]
        return values[0] - values[1]

    point, h = kernels.geodesic_point(geodesic, energy, t), 1e-5
    assert point.value == pytest.approx(change(t), rel=1e-12, abs=1e-12 * fit.value)
    assert point.slope == pytest.approx((change(t + h) - change(t - h)) / (2 * h), rel=1e-6)
    assert kernels.geodesic_point(geodesic, energy, t, with_slope=False).value == point.value


def test_compiled_and_reference_points_agree_where_the_change_is_below_rounding():
    # A turn by 1e-9 changes f by 1e-9 of it, whose square is below a rounding: no difference of values of f
    # would show an error.
    case, found = Case(), []
    for kernels in (compiled, reference):
        geodesic, _, energy = case.geodesic(kernels, 0.1)
        found.append(kernels.geodesic_point(geodesic, energy, 1e-9)[:2])
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("with_slope", [False, True])
def test_sorted_supports_need_half_a_gram_matrix_only(with_slope):
    case = Case()
    block, (geodesic, products, energy) = case.block(compiled), case.geodesic(compiled, 0.1)
    assert block.batches.ascending
    half, whole = (
        compiled.geodesic_point(geodesic, energy, 0.3, with_slope, is_sorted=is_sorted)
        for is_sorted in (True, False)
    )
    half.arrays.gram[np.triu_indices(K, 1)] = np.nan
    half.arrays.gram_rate[np.triu_indices(K, 1)] = np.nan
    found, expected = (
        compiled.refit_codes(block, products, 0.1, point, with_slope) for point in (half, whole)
    )
    assert found == expected


def test_the_memory_of_an_earlier_point_can_be_used_again():
    case = Case()
    block, (geodesic, products, energy) = case.block(compiled), case.geodesic(compiled, 0.1)
    earlier = compiled.geodesic_point(geodesic, energy, 1.3)
    again = compiled.geodesic_point(geodesic, energy, 0.3, arrays=earlier.arrays)
    fresh = compiled.geodesic_point(geodesic, energy, 0.3)
    assert again.arrays is earlier.arrays and again[:2] == fresh[:2]
    found, expected = (compiled.refit_codes(block, products, 0.1, point) for point in (again, fresh))
    assert found == expected
