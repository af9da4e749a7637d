"""Weights of entries: compiled kernels against the reference, both against least squares by NumPy."""

import numpy as np
import pytest
from kernel_cases import (
    TOLERANCE,
    Case,
    M,
    assert_close,
    both_dtypes,
    both_ridges,
    compiled,
    geodesic_of,
    least_squares,
    reference,
)

from manifold_dl.kernels.reduced import reference_weighted, weighted_gram


class WeightedCase(Case):
    """The same with weights of the entries, a fifth of them zero, and some signals without any.

    Supports are small enough for the entries of every other signal to determine the codes.
    """

    def __init__(self, dtype=np.float64, seed=0):
        super().__init__(dtype, seed)
        self.without_large_supports()
        rng = np.random.default_rng(seed + 100)
        weights = rng.uniform(0.3, 2.0, self.signals.shape) * (rng.random(self.signals.shape) > 0.2)
        sizes = np.diff(self.indptr)
        weights[sizes > 3] = np.maximum(weights[sizes > 3], 0.3)
        weights[(sizes > 0) & (np.count_nonzero(weights, axis=1) < sizes)] = 1.0
        weights[::11] = 0.0
        self.weights = weights.astype(dtype)

    def kernels(self, module):
        """The weighted functions of a module, and its blocks."""
        return (compiled if module is compiled else reference_weighted), self.block(module)

    def weighted_fit(self, module, mu, keep_factors=True):
        kernels, block = self.kernels(module)
        return kernels.fit_weighted_codes(block, self.weights, self.atoms, mu, keep_factors)

    def weighted_refit(self, module, mu, t, with_slope=True, codes=None):
        kernels, block = self.kernels(module)
        fit = self.weighted_fit(module, mu)
        geodesic = module.init_geodesic(self.atoms, self.direction, fit.gradient, None, shares_products=False)
        U = geodesic.directions.astype(self.atoms.dtype)
        arguments = block, self.weights
        products = kernels.precompute_weighted_products(*arguments, self.atoms, mu, fit.solutions.codes, U)
        point = module.geodesic_point(geodesic, None, t)
        return kernels.refit_weighted_codes(*arguments, products, mu, point, with_slope, codes)


# Weighted normal equations of up to six atoms, some with little weight, lose two digits more than the others.
LOSS = 100


@both_dtypes
@both_ridges
@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_reference_fits_agree(dtype, mu, seed):
    case = WeightedCase(dtype, seed)
    found, expected = case.weighted_fit(compiled, mu), case.weighted_fit(reference, mu)
    assert found.solutions.codes.dtype == found.gradient.dtype == dtype
    tolerance = LOSS * TOLERANCE[dtype]
    assert found.value == pytest.approx(expected.value, rel=tolerance)
    for one, other in [
        (found.solutions.codes, expected.solutions.codes),
        (found.gradient, expected.gradient),
        (found.energies, expected.energies),
    ]:
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * np.abs(other).max())
    np.testing.assert_array_equal(found.solutions.rank_deficient, expected.solutions.rank_deficient)


@both_ridges
def test_codes_are_weighted_least_squares(mu):
    case = WeightedCase()
    codes = case.weighted_fit(compiled, mu).solutions.codes
    for j, (begin, end) in enumerate(zip(case.indptr[:-1], case.indptr[1:], strict=True)):
        root = np.sqrt(case.weights[j])
        A = root * case.atoms[case.indices[begin:end]]
        np.testing.assert_allclose(
            codes[begin:end], least_squares(A, root * case.signals[j], mu), rtol=0, atol=1e-10
        )


@both_ridges
def test_keeping_the_factors_changes_no_bit_of_the_fit(mu):
    case = WeightedCase()
    kept, not_kept = (case.weighted_fit(compiled, mu, keep) for keep in (True, False))
    assert not_kept.solutions.factors is None
    assert kept.value == not_kept.value
    np.testing.assert_array_equal(kept.gradient, not_kept.gradient)
    np.testing.assert_array_equal(kept.solutions.codes, not_kept.solutions.codes)


@both_dtypes
def test_evaluations_of_fixed_codes_agree(dtype):
    case = WeightedCase(dtype)
    results = []
    for module in (compiled, reference):
        kernels, block = case.kernels(module)
        results.append(kernels.evaluate_weighted_fixed(block, case.weights, case.atoms, case.codes))
    assert results[0][0] == pytest.approx(results[1][0], rel=TOLERANCE[dtype])
    assert_close(results[0][1], results[1][1], dtype)


@both_dtypes
@both_ridges
def test_hessian_products_agree(dtype, mu):
    case = WeightedCase(dtype)
    products = []
    for module in (compiled, reference):
        kernels, block = case.kernels(module)
        solutions = case.weighted_fit(module, mu).solutions
        arguments = block, case.weights, case.atoms, mu, solutions, case.direction
        products.append(kernels.weighted_hessian_product(*arguments))
    assert products[0].dtype == dtype
    np.testing.assert_allclose(*products, rtol=0, atol=LOSS * TOLERANCE[dtype] * np.abs(products[1]).max())


@both_dtypes
@both_ridges
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.4, -1.3])
def test_refits_agree(dtype, mu, t):
    case = WeightedCase(dtype)
    codes = [np.zeros(len(case.indices), dtype) for _ in range(2)]
    found = case.weighted_refit(compiled, mu, t, True, codes[0])
    expected = case.weighted_refit(reference, mu, t, True, codes[1])
    scale = np.sum(case.weights * case.signals.astype(float) ** 2)
    tolerance = LOSS * TOLERANCE[dtype]
    assert found.gain == pytest.approx(expected.gain, abs=tolerance * scale)
    assert found.slope == pytest.approx(expected.slope, abs=tolerance * scale * np.abs(case.angles).max())
    np.testing.assert_allclose(*codes, rtol=0, atol=tolerance * np.abs(codes[1]).max())
    assert case.weighted_refit(compiled, mu, t, with_slope=False).gain == found.gain  # the same bits


class SeparateCase(WeightedCase):
    """Signals without weights that form their own Gram matrices, as those of large dictionaries do."""

    def __init__(self, dtype=np.float64, seed=0):
        super().__init__(dtype, seed)
        self.weights = None


@both_dtypes
@both_ridges
def test_compiled_and_reference_agree_without_weights(dtype, mu):
    case, tolerance = SeparateCase(dtype), LOSS * TOLERANCE[dtype]
    found, expected = case.weighted_fit(compiled, mu), case.weighted_fit(reference, mu)
    assert found.value == pytest.approx(expected.value, rel=tolerance)
    assert_all_close(found.solutions.codes, expected.solutions.codes, tolerance)
    assert_all_close(found.gradient, expected.gradient, tolerance)
    products = []
    for module, fit in ((compiled, found), (reference, expected)):
        kernels, block = case.kernels(module)
        products.append(
            kernels.weighted_hessian_product(block, None, case.atoms, mu, fit.solutions, case.direction)
        )
    assert_all_close(*products, tolerance)
    refits = [case.weighted_refit(module, mu, 0.4) for module in (compiled, reference)]
    scale = np.sum(case.signals.astype(float) ** 2)
    assert refits[0].gain == pytest.approx(refits[1].gain, abs=tolerance * scale)
    assert refits[0].slope == pytest.approx(refits[1].slope, abs=tolerance * scale * case.angles.max())


def assert_all_close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 13])
def test_products_of_supports_of_any_size_are_those_of_numpy(size):
    # Rows go through the products four at a time, and the rest one by one.
    rng = np.random.default_rng(size)
    left, right = rng.standard_normal((2, size, 11))
    lower, both = np.zeros((size * (size + 1) // 2, 3)), np.zeros((size * size, 3))
    weighted_gram.lower_products(left, size, 1, np.empty((4, 4)), lower)
    weighted_gram.all_products(left, right, size, 1, np.empty((4, 4)), both)
    np.testing.assert_allclose(lower[:, 1], (left @ left.T)[np.tril_indices(size)], rtol=0, atol=1e-13)
    np.testing.assert_allclose(both[:, 1], (left @ right.T).ravel(), rtol=0, atol=1e-13)
    assert not lower[:, ::2].any() and not both[:, ::2].any()  # the other signals of the batch


@both_ridges
@pytest.mark.parametrize("ones", [True, False])
def test_weights_of_one_and_no_weights_are_the_shared_kernels(mu, ones):
    case = WeightedCase() if ones else SeparateCase()
    if ones:
        case.weights[:] = 1
    found, expected = case.weighted_fit(compiled, mu), case.fit(compiled, mu)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert_close(found.gradient, expected.gradient, np.float64)
    assert_close(found.energies, expected.energies, np.float64)
    geodesic, products, energy = geodesic_of(
        compiled, case.block(compiled), case.atoms, case.direction, mu, expected
    )
    point = compiled.geodesic_point(geodesic, energy, 0.4)
    refit = compiled.refit_codes(case.block(compiled), products, mu, point)
    rates = compiled.geodesic_point(geodesic, np.zeros_like(energy), 0.4)
    weighted = case.weighted_refit(compiled, mu, 0.4)
    assert rates.value + weighted.gain == pytest.approx(point.value + refit.gain, rel=1e-11)
    assert rates.slope + weighted.slope == pytest.approx(point.slope + refit.slope, rel=1e-11)


def test_a_signal_without_weight_has_zero_codes_and_full_rank():
    case = WeightedCase()
    fit = case.weighted_fit(compiled, 0.0)
    assert len(fit.solutions.rank_deficient) == 0
    missing = np.repeat(~case.weights.any(axis=1), np.diff(case.indptr))
    assert missing.any() and not fit.solutions.codes[missing].any()


@both_ridges
def test_undetermined_codes_have_the_smallest_norm(mu):
    case = WeightedCase()
    few = np.flatnonzero(np.diff(case.indptr) == M - 1)
    case.weights[few, 2:] = 0  # two entries for five atoms
    found, expected = case.weighted_fit(compiled, mu), case.weighted_fit(reference, mu)
    undetermined = np.count_nonzero(case.weights[few].any(axis=1)) if mu == 0 else 0
    assert len(found.solutions.rank_deficient) == undetermined
    np.testing.assert_allclose(found.solutions.codes, expected.solutions.codes, rtol=0, atol=1e-10)
    found, expected = case.weighted_refit(compiled, mu, 0.3), case.weighted_refit(reference, mu, 0.3)
    assert found.gain == pytest.approx(expected.gain, rel=1e-9)
    assert found.slope == pytest.approx(expected.slope, rel=1e-9)
    assert found.n_rank_deficient == expected.n_rank_deficient
