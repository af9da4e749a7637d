"""Codes at a point of a geodesic: their gain and its slope, and the codes themselves."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_cases import (
    TOLERANCE,
    Case,
    M,
    both_dtypes,
    both_kernels,
    both_ridges,
    compiled,
    make_block,
    reference,
)


@both_dtypes
@both_ridges
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.3, -2.0])
def test_compiled_and_reference_gains_agree(dtype, mu, t):
    case = Case(dtype)
    found, expected = case.refit(compiled, mu, t), case.refit(reference, mu, t)
    # The reference subtracts two values of this size; the compiled kernel has a formula for the difference.
    scale = float(np.sum(case.signals.astype(float) ** 2)) * (1 + case.angles.max())
    assert found.gain == pytest.approx(expected.gain, abs=TOLERANCE[dtype] * scale)
    assert found.slope == pytest.approx(expected.slope, abs=TOLERANCE[dtype] * scale)
    assert found.n_rank_deficient == expected.n_rank_deficient
    # Computing the slope does not change the value.
    assert case.refit(compiled, mu, t, with_slope=False).gain == found.gain


@both_kernels
@both_dtypes
@both_ridges
def test_codes_at_t_are_those_of_a_fit(kernels, dtype, mu):
    case, t = Case(dtype), 0.02
    if mu == 0:
        case.without_large_supports()  # at μ = 0 their rank depends on a rounding
    codes = np.full_like(case.codes[: len(case.indices)], np.nan)
    case.refit(kernels, mu, t, codes=codes)
    atoms = reference.positions(case.geodesic(reference, mu)[0], t).atoms.astype(dtype)
    expected = case.fit(reference, mu, atoms).solutions.codes
    # Atoms are rounded to single precision for the fit, and not for the refit.
    np.testing.assert_allclose(codes, expected, rtol=0, atol=10 * TOLERANCE[dtype] * np.abs(expected).max())


@both_kernels
@both_ridges
def test_slope_is_the_derivative_of_the_gain(kernels, mu):
    case, t, h = Case().without_large_supports(), 0.02, 1e-6
    gain, slope, _ = case.refit(kernels, mu, t)
    difference = (case.refit(kernels, mu, t + h).gain - case.refit(kernels, mu, t - h).gain) / (2 * h)
    # The reference subtracts values of a few hundred: their rounding, over h, is 1e-7.
    assert slope == pytest.approx(difference, rel=1e-5)
    assert gain < 0  # solving for the codes again can only help


def test_a_rank_deficient_support_that_padding_repeats_counts_once():
    # Padding repeats the first support of a batch: if that lacks full rank, it still counts once.
    case = Case(copies=3)
    case.atoms[7] = case.atoms[2]
    case.direction[7] = case.direction[2]
    case.units[7], case.angles[7] = case.units[2], case.angles[2]
    found, expected = case.refit(compiled, 0.0, 0.01), case.refit(reference, 0.0, 0.01)
    pairs = sum(
        {2, 7} <= set(case.indices[begin:end].tolist()) or end - begin > M
        for begin, end in pairwise(case.indptr)
    )
    assert found.n_rank_deficient == expected.n_rank_deficient == pairs > 0
    # 1e-11: the supports moved by up to a hundredth are less well conditioned than those drawn.
    assert found[:2] == pytest.approx(expected[:2], rel=1e-11)


@both_kernels
@both_dtypes
@both_ridges
@pytest.mark.parametrize("t", [0.0, 0.3, -2.0])
def test_several_blocks_add_up_to_the_change_of_one(kernels, dtype, mu, t):
    case = Case(dtype)
    n = len(case.signals)
    geodesic, products, energy = case.geodesic(kernels, mu)
    point = kernels.geodesic_point(geodesic, energy, t)
    whole = kernels.refit_codes(case.block(kernels), products, mu, point)
    start = case.fit(reference, mu).solutions.codes

    energies, parts = [], []
    for first, last in pairwise([0, 7, 8, 50, n]):
        entries = slice(case.indptr[first], case.indptr[last])
        indptr = case.indptr[first : last + 1] - case.indptr[first]
        block = make_block(kernels, case.signals[first:last], indptr, case.indices[entries])
        U = geodesic.directions.astype(dtype)
        products, own_energy = kernels.precompute_products(
            block, case.atoms, case.gram, mu, start[entries], U
        )
        energies.append(own_energy)
        parts.append((block, products))
    point_of_sum = kernels.geodesic_point(geodesic, sum(energies), t)
    refits = [kernels.refit_codes(block, products, mu, point_of_sum) for block, products in parts]
    # Sums of the same numbers in another order. In single precision the reference itself works in it.
    scale = TOLERANCE[dtype] * (1 + case.angles.max()) * float(np.sum(case.signals.astype(float) ** 2))
    assert point_of_sum.value == pytest.approx(point.value, abs=1e-12 * scale / TOLERANCE[dtype])
    assert point_of_sum.slope == pytest.approx(point.slope, abs=1e-12 * scale / TOLERANCE[dtype])
    assert sum(refit.gain for refit in refits) == pytest.approx(whole.gain, abs=scale)
    assert sum(refit.slope for refit in refits) == pytest.approx(whole.slope, abs=scale)
    assert sum(refit.n_rank_deficient for refit in refits) == whole.n_rank_deficient
