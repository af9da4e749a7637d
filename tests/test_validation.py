"""Input validation: mistakes are refused with a sentence, nothing changes, all forms of a support agree."""

import numpy as np
import pytest
import scipy.sparse

from manifold_dl import update_problem
from manifold_dl._validation import (
    as_atoms,
    as_dictionary,
    as_matrix,
    as_observed,
    as_ridge,
    as_weights,
)
from manifold_dl.problem.support import as_support

M, D_, N = 4, 6, 10


def good():
    """Arguments of an update of three of six atoms that nobody could object to."""
    rng = np.random.default_rng(0)
    dictionary = rng.standard_normal((M, D_))
    mask = np.arange(D_)[:, None] % 3 == np.arange(N) % 3
    return {
        "signals": rng.standard_normal((M, N)),
        "support": scipy.sparse.csc_array(mask * rng.standard_normal((D_, N))),
        "dictionary": dictionary / np.linalg.norm(dictionary, axis=0),
        "atoms": [0, 2, 5],
        "mu": 0.1,
    }


def with_entry(name, value, dtype=float):
    array = good()[name].astype(dtype)
    array[1, 2] = value
    return array


def stray_index(make, index):
    matrix = make(good()["support"])
    matrix.indices[3] = index
    return matrix


def stray_coordinate():
    matrix = good()["support"].tocoo()
    matrix.coords[1][0] = 99
    return matrix


ROWS = np.tile([0, 1], (N, 1))

# What is given wrongly, how, the exception, and words of the sentence that refuses it.
REFUSED = [
    # NaN or infinity
    ("signals", with_entry("signals", np.nan), ValueError, "signals holds nan at row 1, column 2"),
    ("signals", with_entry("signals", -np.inf), ValueError, "signals holds -inf at row 1, column 2"),
    ("signals", with_entry("signals", np.inf, np.float32), ValueError, "signals holds inf at row 1"),
    ("dictionary", with_entry("dictionary", np.nan), ValueError, "dictionary holds nan at row 1, column 2"),
    ("dictionary", with_entry("dictionary", np.inf), ValueError, "dictionary holds inf"),
    ("support", good()["support"] * np.inf, ValueError, "codes hold NaN or infinity"),
    ("support", np.full((D_, N), np.nan), ValueError, "support holds nan"),
    # shapes
    ("signals", np.ones(N), ValueError, "signals has shape"),
    ("signals", np.ones((M, N, 1)), ValueError, "signals has shape"),
    ("signals", np.ones((M, 0)), ValueError, "empty"),
    ("signals", np.ones((0, N)), ValueError, "empty"),
    ("signals", np.ones((M + 1, N)), ValueError, "atoms of length 4, but the signals have length 5"),
    ("signals", np.ones((M, N + 1)), ValueError, "support is for 10 signals, but there are 11"),
    ("dictionary", np.ones((M + 1, D_)), ValueError, "atoms of length 5, but the signals have length 4"),
    ("dictionary", np.ones((M, D_ + 1)), ValueError, "names 6 atoms, but the dictionary has 7"),
    ("dictionary", np.ones(M), ValueError, "dictionary has shape"),
    ("dictionary", None, ValueError, "give the whole dictionary"),
    ("support", np.ones((D_, N - 1), bool), ValueError, "support is for 9 signals, but there are 10"),
    ("support", np.ones((D_, N, 1), bool), ValueError, "support has shape"),
    ("support", np.ones(N, bool), ValueError, "support has shape"),
    ("support", ROWS[1:], ValueError, "index array has 9 rows, but there are 10 signals"),
    ("support", good()["support"].T, ValueError, "support is for 6 signals"),
    # a support outside D
    ("support", ROWS + 5, ValueError, "names atom 6, but the dictionary has atoms 0 to 5"),
    ("support", ROWS - 2, ValueError, "names atom -2"),
    ("support", ROWS // 2, ValueError, "names atom 0 twice"),
    ("support", np.ones((D_ + 1, N), bool), ValueError, "names 7 atoms, but the dictionary has 6"),
    ("support", stray_index(scipy.sparse.csc_array, D_), ValueError, "index 6, outside its own shape"),
    ("support", stray_index(scipy.sparse.csc_array, -1), ValueError, "index -1, outside its own shape"),
    ("support", stray_index(scipy.sparse.csr_array, N), ValueError, "index 10, outside its own shape"),
    ("support", stray_coordinate(), ValueError, "index 99, outside its own shape"),
    # atoms
    ("atoms", [], ValueError, "atoms is empty"),
    ("atoms", np.zeros(D_, bool), ValueError, "atoms is empty"),
    ("atoms", [0, 2, 0], ValueError, "atom 0 is repeated"),
    ("atoms", [0, 6], ValueError, "atom 6 is out of range"),
    ("atoms", [-1], ValueError, "atom -1 is out of range"),
    ("atoms", [0.0, 1.0], TypeError, "whole numbers"),
    ("atoms", [[0, 1]], TypeError, "whole numbers"),
    ("atoms", np.ones(D_ - 1, bool), TypeError, "whole numbers"),
    ("atoms", ["first"], TypeError, "whole numbers"),
    # μ
    ("mu", -1e-300, ValueError, "mu=-1e-300: the ridge must be finite and not negative"),
    ("mu", np.nan, ValueError, "mu=nan"),
    ("mu", np.inf, ValueError, "mu=inf"),
    ("mu", [0.1], TypeError, "the ridge is one number"),
    ("mu", "0.1", TypeError, "the ridge is one number"),
    ("mu", 1j, TypeError, "the ridge is one number"),
    ("mu", None, TypeError, "the ridge is one number"),
    # atoms without a direction
    ("dictionary", good()["dictionary"] * (np.arange(D_) != 3), ValueError, "dictionary column 3 is zero"),
    # other numbers, and none
    ("signals", np.ones((M, N), complex), TypeError, "signals has dtype complex128; only real"),
    ("signals", np.ones((M, N), object), TypeError, "signals has dtype object; only real"),
    ("signals", np.full((M, N), "1"), TypeError, "only real"),
    ("signals", scipy.sparse.csc_array(np.ones((M, N))), TypeError, "dense only; use `.toarray()`"),
    ("dictionary", scipy.sparse.eye_array(M), TypeError, "dense only; use `.toarray()`"),
    # masked arrays, with or without masked entries
    ("signals", np.ma.masked_array(good()["signals"]), TypeError, "signals is a masked array"),
    (
        "dictionary",
        np.ma.masked_array(np.ones((M, D_)), mask=True),
        TypeError,
        "dictionary is a masked array",
    ),
    ("support", np.ma.masked_array(np.ones((D_, N), bool)), TypeError, "the support is a masked array"),
    ("atoms", np.ma.masked_array([0, 2], [True, False]), TypeError, "atoms is a masked array"),
    ("dictionary", np.ones((M, D_), complex), TypeError, "dictionary has dtype complex128; only real"),
    ("dictionary", np.ones((M, D_), object), TypeError, "dictionary has dtype object; only real"),
    ("support", good()["support"] * 1j, TypeError, "support has dtype complex128; only real"),
    ("support", np.ones((D_, N), complex), TypeError, "support has dtype complex128; only real"),
    ("support", np.ones((D_, N), object), TypeError, "support has dtype object; only real"),
    # how the codes behave
    ("codes", "frozen", ValueError, "'follow' the dictionary or stay 'fixed'"),
    ("threads", 0, ValueError, "whole number of at least 1"),
]


def build(arguments):
    named = {name: value for name, value in arguments.items() if name not in ("signals", "support")}
    return update_problem(arguments["signals"], arguments["support"], **named)


def snapshot(arguments):
    return {
        name: value.copy() if hasattr(value, "copy") else value
        for name, value in arguments.items()
        if value is not None
    }


def assert_same(left, right):
    assert left.keys() == right.keys()
    for name in left:
        a, b = (x.toarray() if scipy.sparse.issparse(x) else np.asarray(x) for x in (left[name], right[name]))
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize(
    ("name", "value", "exception", "words"), REFUSED, ids=[f"{row[0]}: {row[3]}" for row in REFUSED]
)
def test_bad_input_is_refused_by_the_validation(name, value, exception, words):
    arguments = {**good(), name: value}
    stray = "outside its own shape" in words  # SciPy cannot even copy those to a dense array
    before = {} if stray else snapshot(arguments)
    with pytest.raises(exception) as refusal:
        build(arguments)
    message = str(refusal.value)
    assert words in message
    assert message.endswith(".")  # a sentence
    assert_same(before, {} if stray else snapshot(arguments))


def test_nothing_that_is_given_changes():
    arguments = good()
    before = snapshot(arguments)
    problem = build(arguments)
    point = arguments["dictionary"][:, arguments["atoms"]]
    direction = problem.manifold.random_tangent_vector(point, rng=1)
    problem.restrict(point, direction).derivative(0.3)
    problem.riemannian_hessian(point, direction)
    problem.codes(point).data[:] = 0
    problem.dictionary(point)[:] = 0
    assert_same(before, snapshot(arguments))


def test_fixed_codes_need_codes():
    for support in (ROWS, np.ones((D_, N), bool), scipy.sparse.csc_array(np.ones((D_, N), bool))):
        with pytest.raises(ValueError, match="needs the codes"):
            update_problem(np.ones((M, N)), support, codes="fixed")


# What is accepted


def test_matrices_keep_their_precision_and_are_not_copied():
    for dtype in (np.float32, np.float64):
        array = np.ones((2, 3), dtype)
        assert as_matrix(array, "array") is array
    for dtype in (bool, np.int8, np.uint64, np.float16, np.longdouble):
        assert as_matrix(np.ones((2, 3), dtype), "array").dtype == np.float64
    assert as_matrix([[1, 2], [3, 4]], "array").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_large_numbers_are_not_mistaken_for_infinity():
    # Their sum overflows, they do not.
    as_matrix(np.full((2, 3), 1e308), "array")
    as_matrix(np.full((2, 3), np.float32(3e38)), "array")


def test_dictionaries_of_any_norm():
    assert as_dictionary([[1e-200, 3.0], [0.0, 4.0]]).shape == (2, 2)


def test_ridges():
    for mu in (0, 0.0, 1, 0.1, np.float32(0.5), np.int64(2)):
        assert as_ridge(mu) == mu and type(as_ridge(mu)) is float


def test_atoms_keep_their_order():
    assert as_atoms(None, 3).tolist() == [0, 1, 2]
    assert as_atoms([2, 0], 3).tolist() == [2, 0]
    assert as_atoms(range(1, 3), 3).tolist() == [1, 2]
    assert as_atoms(np.uint8(2), 3).tolist() == [2]
    assert as_atoms([True, False, True], 3).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("weights", "exception", "words"),
    [
        (np.ones(M), ValueError, "one number per signal"),
        (np.ones((N, M)), ValueError, "one number per signal"),
        (np.ones((1, N)), ValueError, "one number per signal"),
        (np.full(N, -1.0), ValueError, "weights holds -1.0 at (0,)"),
        (np.full((M, N), np.nan), ValueError, "weights holds nan at (0, 0)"),
        (np.full((M, N), np.inf), ValueError, "weights holds inf at (0, 0)"),
        (np.ones(N, complex), TypeError, "only real numbers"),
        (scipy.sparse.csc_array(np.ones((M, N))), TypeError, "dense only"),
        (np.ma.masked_array(np.ones(N)), TypeError, "weights is a masked array"),
    ],
)
def test_bad_weights_are_refused(weights, exception, words):
    with pytest.raises(exception) as refusal:
        as_weights(weights, M, N, float)
    assert words in str(refusal.value)


def test_weights_of_one_are_no_weights():
    for ones in (np.ones(N), np.ones((M, N), bool), np.ones(N, np.int8)):
        assert as_weights(ones, M, N, np.float32) is None
    assert as_weights(2 * np.ones(N, int), M, N, np.float32).dtype == np.float32
    # A constant column of an m×n array is still a weight of its entries.
    assert as_weights(2 * np.ones((M, N)), M, N, float).shape == (M, N)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_what_has_no_weight_may_be_anything(value, order):
    Y = np.asarray(good()["signals"], order=order)
    given, per_entry, per_signal = Y.copy(order="K"), np.ones((M, N)), np.ones(N)
    given[1, 2], per_entry[1, 2] = value, 0
    found, _ = as_observed(given, per_entry)
    Y[1, 2] = 0.0
    assert found.tobytes() == Y.tobytes() and found.flags.f_contiguous == Y.flags.f_contiguous
    assert not np.array_equal(given, found)  # the caller's array keeps its entry
    per_signal[2] = 0
    assert not as_observed(given, per_signal)[0][:, 2].any()
    if not np.isfinite(value):
        with pytest.raises(ValueError, match="at row 1, column 2"):
            as_observed(given, np.full((M, N), 0.5))


def shuffled_within_columns(codes):
    """The same csc array with the entries of every column in another order."""
    data, indices = codes.data.copy(), codes.indices.copy()
    for begin, end in zip(codes.indptr[:-1], codes.indptr[1:], strict=True):
        data[begin:end], indices[begin:end] = data[begin:end][::-1].copy(), indices[begin:end][::-1].copy()
    return scipy.sparse.csc_array((data, indices, codes.indptr), shape=codes.shape)


def as_index_rows(mask, width=None):
    """n×S indices in reverse order, padded with −1 at the front and the back."""
    rows = np.full((mask.shape[1], width or mask.sum(axis=0).max() + 2), -1)
    for j, column in enumerate(mask.T):
        I = np.flatnonzero(column)[::-1]
        rows[j, 1 : 1 + len(I)] = I
    return rows


def halves(codes):
    """The same array as a sum of duplicate entries: what a careless assembly leaves behind."""
    coo = codes.tocoo()
    twice = (np.tile(coo.data / 2, 2), (np.tile(coo.coords[0], 2), np.tile(coo.coords[1], 2)))
    return scipy.sparse.coo_array(twice, shape=codes.shape)


FORMS = {
    "mask": lambda X: X.toarray() != 0,
    "list of lists": lambda X: (X.toarray() != 0).tolist(),
    "indices": lambda X: as_index_rows(X.toarray() != 0),
    "small indices": lambda X: as_index_rows(X.toarray() != 0).astype(np.int8),
    "csc": lambda X: X,
    "csc matrix": scipy.sparse.csc_matrix,
    "csr": lambda X: X.tocsr(),
    "coo": lambda X: X.tocoo(),
    "lil": lambda X: X.tolil(),
    "dense codes": lambda X: X.toarray(),
    "unsorted": shuffled_within_columns,
    "duplicates": halves,
    "boolean csr": lambda X: X.astype(bool).tocsr(),
    "integer csc": lambda X: X.astype(bool).astype(int),
    "wide indices": lambda X: scipy.sparse.csc_array(
        (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape
    ),
}

VALUES = {"csc", "csc matrix", "csr", "coo", "lil", "dense codes", "unsorted", "duplicates", "wide indices"}


@pytest.fixture
def codes():
    rng = np.random.default_rng(3)
    mask = rng.random((D_, N)) < 0.4
    mask[:, 4] = False  # a signal that uses no atom
    mask[D_ - 1, 0] = True  # the last atom is used: an index array does not say how many atoms there are
    return scipy.sparse.csc_array(mask * (0.5 + rng.random((D_, N))))


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_support_agree(form, codes):
    given = FORMS[form](codes)
    for n_atoms in (D_, None):
        support = as_support(given, N, n_atoms)
        np.testing.assert_array_equal(support.indptr, codes.indptr)
        np.testing.assert_array_equal(support.indices, codes.indices)
        assert support.indptr.dtype == np.int64 and support.indices.dtype == np.int32
        assert (support.n_atoms, support.n_signals) == (D_, N)
        if form in VALUES:
            np.testing.assert_array_equal(support.values, codes.data)  # halves add up without rounding
        else:
            assert support.values is None


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_problem(form, codes):
    rng = np.random.default_rng(4)
    Y = rng.standard_normal((M, N))
    expected, found = update_problem(Y, codes, mu=0.1), update_problem(Y, FORMS[form](codes), mu=0.1)
    point = expected.manifold.random_point(rng)
    assert found.cost(point) == expected.cost(point)
    np.testing.assert_array_equal(found.codes(point).toarray(), expected.codes(point).toarray())


def test_explicit_zeros_belong_to_the_support(codes):
    # A coder may find that a coefficient is exactly zero: it is a place where a code may grow.
    codes.data[::3] = 0
    support = as_support(codes, N)
    np.testing.assert_array_equal(support.indices, codes.indices)
    dense = as_support(codes.toarray(), N)
    assert len(dense.indices) == np.count_nonzero(codes.data)


def test_the_given_sparse_array_is_left_as_it_was(codes):
    given = shuffled_within_columns(codes)
    indices, data = given.indices.copy(), given.data.copy()
    as_support(given, N)
    np.testing.assert_array_equal(given.indices, indices)
    np.testing.assert_array_equal(given.data, data)


def test_a_checked_support_is_still_matched_with_the_signals(codes):
    support = as_support(codes, N)
    assert as_support(support, N, D_) is support
    with pytest.raises(ValueError, match="for 10 signals, but there are 11"):
        as_support(support, N + 1)
