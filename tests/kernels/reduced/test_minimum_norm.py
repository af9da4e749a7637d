"""Supports without full rank at μ = 0: minimum-norm codes, the same in compiled kernels and reference."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_cases import (
    Case,
    M,
    both_kernels,
    compiled,
    dependent_atoms,
    geodesic_of,
    gram_of,
    make_block,
    reference,
)

DEPENDENT = ["duplicate", "antipodal", "in a plane"]

# The third atom as a combination of the first two: a direction that keeps it, keeps the rank.
COMBINATION = {"duplicate": (1.0, 0.0), "antipodal": (-1.0, 0.0), "in a plane": (0.6, 0.8)}


def fit_dependent(kernels, signals, indptr, indices, atoms, mu=0.0):
    block = make_block(kernels, signals, indptr, indices)
    return kernels.fit_codes(block, atoms, gram_of(atoms), mu)


@both_kernels
@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_atoms_get_the_minimum_norm_codes(kernels, name):
    signals, indptr, indices, atoms = dependent_atoms(name)
    solutions = fit_dependent(kernels, signals, indptr, indices, atoms).solutions
    expected = np.linalg.lstsq(atoms.T, signals.T, rcond=None)[0].T
    np.testing.assert_allclose(
        solutions.codes.reshape(40, 3), expected, rtol=0, atol=1e-13 * np.abs(expected).max()
    )
    np.testing.assert_array_equal(solutions.rank_deficient, np.arange(40))
    if name != "in a plane":  # the minimum norm gives copies equal codes
        np.testing.assert_allclose(np.abs(solutions.codes[0::3]), np.abs(solutions.codes[2::3]), rtol=1e-12)


@both_kernels
@pytest.mark.parametrize("eps", [1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-15, 1e-16])
def test_nearly_collinear_atoms_lose_no_more_than_the_rounding_of_their_codes(kernels, eps):
    signals, indptr, indices, atoms = dependent_atoms("nearly collinear", eps)
    fit = fit_dependent(kernels, signals, indptr, indices, atoms)
    codes = fit.solutions.codes.reshape(40, 3)
    best = np.linalg.norm(signals.T - atoms.T @ np.linalg.lstsq(atoms.T, signals.T, rcond=None)[0])
    # Codes grow like 1/eps, and their roundings appear in the residual; never more than that is lost.
    slack = 100 * np.finfo(float).eps * np.linalg.norm(codes)
    assert np.isfinite(fit.gradient).all()
    assert np.sqrt(fit.value) <= best * (1 + 1e-12) + slack
    # The value is that of the codes returned, computed here by a plain product.
    assert np.sqrt(fit.value) == pytest.approx(np.linalg.norm(signals - codes @ atoms), rel=1e-12, abs=slack)
    # The second pivot is about eps²: above the threshold of 1e-8 for 1e-3, far below it from 1e-5 on.
    if eps == 1e-3:
        assert not len(fit.solutions.rank_deficient)
    elif eps <= 1e-5:
        assert len(fit.solutions.rank_deficient) == 40


@pytest.mark.parametrize("name", [*DEPENDENT, "nearly collinear"])
def test_compiled_and_reference_agree_on_rank_deficient_supports(name):
    signals, indptr, indices, atoms = dependent_atoms(name, eps=1e-5)
    direction = np.random.default_rng(8).standard_normal(atoms.shape)
    direction -= atoms * np.sum(atoms * direction, axis=1, keepdims=True)
    cross = atoms @ direction.T
    results = []
    for kernels in (compiled, reference):
        block = make_block(kernels, signals, indptr, indices)
        fit = kernels.fit_codes(block, atoms, gram_of(atoms), 0.0)
        product = kernels.hessian_product(block, atoms, cross, 0.0, fit.solutions, direction)
        geodesic, products, energy = geodesic_of(kernels, block, atoms, direction, 0.0, fit)
        point = kernels.geodesic_point(geodesic, energy, 0.0)
        results.append((fit.value, product, kernels.refit_codes(block, products, 0.0, point)))
    (value, product, refit), (expected_value, expected_product, expected_refit) = results
    assert value == pytest.approx(expected_value, rel=1e-12)
    # Both use the same pseudo-inverse; its entries reach 1e10 for the nearly collinear ones.
    np.testing.assert_allclose(product, expected_product, rtol=0, atol=1e-10 * np.abs(expected_product).max())
    assert refit.n_rank_deficient == expected_refit.n_rank_deficient == 40
    # At t = 0 there is nothing to gain: gᵀM⁺g with g = Aᵀr, in which the rounding of A x remains. It is
    # divided by the smallest eigenvalue of M that counts, 1e-10 for the nearly collinear ones.
    largest_inverse = 1e10 if name == "nearly collinear" else 10.0
    rounding = 2 * np.finfo(float).eps * np.abs(fit.solutions.codes).max()
    assert refit.gain == pytest.approx(0, abs=max(1e-12 * value, 40 * rounding**2 * largest_inverse))


@both_kernels
@pytest.mark.parametrize("name", DEPENDENT)
def test_hessian_product_of_rank_deficient_supports_is_the_derivative_of_the_gradient(kernels, name):
    # Along a direction that keeps the dependence f is smooth, though no system has full rank.
    signals, indptr, indices, atoms = dependent_atoms(name)
    direction = np.random.default_rng(9).standard_normal(atoms.shape)
    direction[2] = COMBINATION[name] @ direction[:2]
    atoms[2] = COMBINATION[name] @ atoms[:2]
    block = make_block(kernels, signals, indptr, indices)
    h = 1e-5  # central differences: h² ~ 1e-10 of truncation, 1e-16/h ~ 1e-11 of rounding

    def at(t):
        moved = atoms + t * direction
        fit = kernels.fit_codes(block, moved, gram_of(moved), 0.0)
        assert len(fit.solutions.rank_deficient) == 40
        return fit

    fit, (after, before) = at(0.0), (at(h), at(-h))
    slope = (after.value - before.value) / (2 * h)
    assert np.vdot(fit.gradient, direction) == pytest.approx(slope, rel=1e-7)
    difference = (after.gradient - before.gradient) / (2 * h)
    for _ in range(2):  # the second one finds what the first has left of the factors
        product = kernels.hessian_product(block, atoms, atoms @ direction.T, 0.0, fit.solutions, direction)
        np.testing.assert_allclose(product, difference, rtol=0, atol=1e-7 * np.abs(difference).max())


@both_kernels
def test_hessian_product_where_some_supports_of_a_batch_lack_full_rank(kernels):
    # Two equal atoms that move alike, in some supports of every size from 2 on; the others have full rank.
    case = Case().without_large_supports()
    case.atoms[7], case.direction[7] = case.atoms[2], case.direction[2]
    block, h = case.block(kernels), 1e-5

    def at(t):
        atoms = case.atoms + t * case.direction
        return kernels.fit_codes(block, atoms, gram_of(atoms), 0.0)

    fit = at(0.0)
    assert 0 < len(fit.solutions.rank_deficient) < len(case.signals) / 2
    difference = (at(h).gradient - at(-h).gradient) / (2 * h)
    cross = case.atoms @ case.direction.T
    product = kernels.hessian_product(block, case.atoms, cross, 0.0, fit.solutions, case.direction)
    np.testing.assert_allclose(product, difference, rtol=0, atol=1e-6 * np.abs(difference).max())


def test_with_a_ridge_no_support_lacks_full_rank():
    for name in DEPENDENT:
        assert not len(fit_dependent(compiled, *dependent_atoms(name), mu=0.1).solutions.rank_deficient)


@both_kernels
def test_rank_deficient_signals_are_found_among_others(kernels):
    case = Case()
    case.atoms[7] = -case.atoms[2]
    solutions = case.fit(kernels, 0.0).solutions
    for j, (begin, end) in enumerate(pairwise(case.indptr)):
        I = case.indices[begin:end]
        is_rank_deficient = len(I) > M or {2, 7} <= set(I.tolist())
        assert (j in solutions.rank_deficient) == is_rank_deficient
    assert np.isfinite(solutions.codes).all()


@both_kernels
def test_a_dictionary_that_is_not_finite_gives_nan_and_no_exception(kernels):
    # Pymanopt's own searchers can evaluate the cost at a NaN point.
    signals, indptr, indices, atoms = dependent_atoms("none")
    atoms[1, 0] = np.nan
    assert np.isnan(fit_dependent(kernels, signals, indptr, indices, atoms).value)


@both_kernels
def test_a_zero_atom_gets_a_zero_code(kernels):
    # On a Euclidean manifold nothing keeps an atom from vanishing: its minimum-norm code is 0.
    signals, indptr, indices, atoms = dependent_atoms("none")
    atoms[1] = 0
    fit = fit_dependent(kernels, signals, indptr, indices, atoms)
    assert not fit.solutions.codes[1::3].any()
    assert np.isfinite(fit.value)
