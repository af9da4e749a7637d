"""Atoms on their unit spheres: tangent components and great circles."""

import numpy as np
import pytest
from kernel_cases import Case, assert_close, both_dtypes, both_kernels, compiled, reference


@both_kernels
def test_dot_is_a_python_number(kernels):
    found = kernels.dot(np.arange(4.0), np.arange(4.0))
    assert found == 14.0 and type(found) is float


@both_kernels
def test_dot_refuses_vectors_of_different_lengths(kernels):
    with pytest.raises(ValueError):
        kernels.dot(np.ones(3), np.ones(4))


@both_dtypes
@pytest.mark.parametrize("name", ["project_to_tangent", "sphere_exp"])
def test_compiled_and_reference_spheres_agree(dtype, name):
    case = Case(dtype)
    found, expected = np.empty_like(case.atoms), np.empty_like(case.atoms)
    for kernels, result in ((compiled, found), (reference, expected)):
        getattr(kernels, name)(case.atoms, case.direction, result)
    assert_close(found, expected, dtype)


@both_kernels
@both_dtypes
def test_norm_error_is_that_of_the_worst_row(kernels, dtype):
    case = Case(dtype)
    rounding = 8 * np.finfo(dtype).eps
    assert kernels.norm_error(case.atoms) < rounding
    rows = case.atoms.copy()
    rows[1] *= 0.75
    rows[2] *= 1.125
    assert abs(kernels.norm_error(rows) - 0.25) < rounding
    for wrong in (np.nan, np.inf):
        rows[0, 1] = wrong
        assert kernels.norm_error(rows) == np.inf


@both_dtypes
def test_an_atom_at_rest_stays_as_it_is(dtype):
    case = Case(dtype)
    result = np.empty_like(case.atoms)
    compiled.sphere_exp(case.atoms, case.direction, result)
    np.testing.assert_array_equal(result[3], case.atoms[3])


@both_kernels
def test_projections_are_orthogonal_to_their_atoms_and_great_circles_have_unit_norm(kernels):
    case, rng = Case(), np.random.default_rng(2)
    rows, projected, moved = rng.standard_normal(case.atoms.shape), *np.empty((2, *case.atoms.shape))
    kernels.project_to_tangent(case.atoms, rows, projected)
    np.testing.assert_allclose(np.vecdot(case.atoms, projected), 0, atol=1e-14)
    kernels.sphere_exp(case.atoms, projected, moved)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, rtol=1e-15)
    # As far along the great circle as the tangent vector is long.
    angles = np.linalg.norm(projected, axis=1)
    np.testing.assert_allclose(np.vecdot(case.atoms, moved), np.cos(angles), atol=1e-14)
