"""Codes on a support, value, gradient and Hessian product: compiled against reference, both against NumPy."""

import numpy as np
import pytest
from kernel_cases import (
    TOLERANCE,
    Case,
    K,
    M,
    assert_close,
    both_dtypes,
    both_kernels,
    both_ridges,
    compiled,
    geodesic_of,
    gram_of,
    least_squares,
    make_block,
    reference,
    unit_rows,
)

# Compiled = reference


@both_dtypes
@both_ridges
@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_reference_fits_agree(dtype, mu, seed):
    case = Case(dtype, seed)
    found, expected = case.fit(compiled, mu), case.fit(reference, mu)
    assert found.solutions.codes.dtype == found.gradient.dtype == dtype
    assert found.value == pytest.approx(expected.value, rel=TOLERANCE[dtype])
    assert_close(found.solutions.codes, expected.solutions.codes, dtype)
    assert_close(found.gradient, expected.gradient, dtype)
    assert_close(found.energies, expected.energies, dtype)
    np.testing.assert_array_equal(found.solutions.rank_deficient, expected.solutions.rank_deficient)
    assert_close(found.solutions.inverses, expected.solutions.inverses, dtype)


@both_ridges
def test_keeping_the_factors_changes_no_bit_of_the_fit(mu):
    case = Case()
    arguments = case.block(compiled), case.atoms, case.gram, mu
    kept, not_kept = (compiled.fit_codes(*arguments, keep_factors=keep) for keep in (True, False))
    assert not_kept.solutions.factors is None and len(kept.solutions.factors)
    assert kept.value == not_kept.value
    for one, other in [
        (kept.gradient, not_kept.gradient),
        (kept.energies, not_kept.energies),
        (kept.solutions.codes, not_kept.solutions.codes),
        (kept.solutions.rank_deficient, not_kept.solutions.rank_deficient),
    ]:
        np.testing.assert_array_equal(one, other)


@both_dtypes
def test_compiled_and_reference_evaluations_of_fixed_codes_agree(dtype):
    case = Case(dtype)
    value, gradient = compiled.evaluate_fixed(case.block(compiled), case.atoms, case.codes)
    expected_value, expected_gradient = reference.evaluate_fixed(
        case.block(reference), case.atoms, case.codes
    )
    assert gradient.dtype == dtype
    assert value == pytest.approx(expected_value, rel=TOLERANCE[dtype])
    assert_close(gradient, expected_gradient, dtype)


@both_dtypes
@both_ridges
@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_reference_hessian_products_agree(dtype, mu, seed):
    case = Case(dtype, seed)
    products = [hessian_product(kernels, case, mu) for kernels in (compiled, reference)]
    assert products[0].dtype == dtype
    assert_close(*products, dtype)


def hessian_product(kernels, case, mu):
    solutions = case.fit(kernels, mu).solutions
    cross = case.atoms.astype(float) @ case.direction.T.astype(float)
    return kernels.hessian_product(case.block(kernels), case.atoms, cross, mu, solutions, case.direction)


@both_ridges
def test_atoms_need_not_have_unit_norm(mu):
    # On the spheres they have, and the kernels do not read their norms: here they must.
    case = Case().without_large_supports()
    case.atoms *= np.linspace(0.5, 2.0, K)[:, None]
    found, expected = case.fit(compiled, mu), case.fit(reference, mu)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert_close(found.solutions.codes, expected.solutions.codes, np.float64)


# Both against definitions


@both_kernels
@both_ridges
def test_codes_are_the_least_squares_solutions(kernels, mu):
    case = Case()
    fit = case.fit(kernels, mu)
    value = 0.0
    for j, y in enumerate(case.signals):
        entries = slice(*case.indptr[j : j + 2])
        A = case.atoms[case.indices[entries]]
        x = least_squares(A, y, mu)
        value += np.sum((y - x @ A) ** 2) + mu * np.sum(x**2)
        np.testing.assert_allclose(
            fit.solutions.codes[entries], x, rtol=0, atol=1e-12 * max(1, np.abs(x).max(initial=0))
        )
    assert fit.value == pytest.approx(value, rel=1e-12)


@both_kernels
@both_ridges
def test_gradient_and_hessian_product_are_derivatives(kernels, mu):
    case = Case()
    h = 1e-5  # central differences: h² ~ 1e-10 of truncation, 1e-16/h ~ 1e-11 of rounding

    def at(t):
        return case.fit(kernels, mu, case.atoms + t * case.direction)

    # Full-rank supports only: where the rank changes the minimum-norm codes jump, and so does f at μ = 0.
    if mu == 0:
        case.without_large_supports()
    fit = at(0.0)
    slope = (at(h).value - at(-h).value) / (2 * h)
    assert np.vdot(fit.gradient, case.direction) == pytest.approx(slope, rel=1e-7)
    difference = (at(h).gradient - at(-h).gradient) / (2 * h)
    product = hessian_product(kernels, case, mu)
    np.testing.assert_allclose(product, difference, rtol=0, atol=1e-6 * np.abs(difference).max())


@both_kernels
def test_an_exact_fit_without_a_ridge_leaves_no_residual(kernels):
    # Signals that the atoms represent exactly: what is left at μ = 0 is the square of a few roundings, as no
    # small number is added to any diagonal.
    case = Case().without_large_supports()
    case.signals[:] = 0
    reference.add_products(case.signals, case.indptr, case.indices, case.codes, case.atoms)
    fit = case.fit(kernels, 0.0)
    assert fit.value < 1e-28 * np.sum(case.signals**2)
    assert not len(fit.solutions.rank_deficient)


@both_kernels
def test_empty_supports_add_their_energy_and_nothing_else(kernels):
    signals, atoms = np.ones((3, M)), unit_rows(np.ones((2, M)))
    block = make_block(kernels, signals, np.zeros(4, np.int64), np.zeros(0, np.int32))
    fit = kernels.fit_codes(block, atoms, gram_of(atoms), 0.0)
    assert fit.value == 3 * M
    assert not fit.gradient.any() and not fit.energies.any()
    assert not len(fit.solutions.codes) and not len(fit.solutions.rank_deficient)
    assert not kernels.hessian_product(block, atoms, gram_of(atoms), 0.0, fit.solutions, atoms).any()
    geodesic, products, energy = geodesic_of(kernels, block, atoms, atoms, 0.0, fit)
    point = kernels.geodesic_point(geodesic, energy, 0.5)
    assert kernels.refit_codes(block, products, 0.0, point) == (0.0, 0.0, 0)
