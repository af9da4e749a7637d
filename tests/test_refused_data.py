"""Data that would crash the interpreter or be misread is refused by every public function that takes it."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import manifold_dl as mdl
from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    FixedSupport,
    Lasso,
    ReplaceAtoms,
    SimCO,
    images,
    metrics,
    update_problem,
)
from manifold_dl.learning.initialization import initial_dictionary
from manifold_dl.learning.signal_sums import squared_error

M, D_, N = 8, 12, 60
DICTIONARY, CODES, SIGNALS = mdl.datasets.synthetic(M, D_, N, sparsity=3, rng=0)


def fitted_model():
    return mdl.ManifoldDictionaryLearning(D_, coder=OMP(sparsity=3), max_iter=1, random_state=0).fit(
        SIGNALS.T
    )


# Everything that reads sparse codes.
READERS = {
    "SimCO": lambda X: SimCO(mu=0.1)(SIGNALS, DICTIONARY, X),
    "KSVD": lambda X: KSVD()(SIGNALS, DICTIONARY, X),
    "MOD": lambda X: MOD()(SIGNALS, DICTIONARY, X),
    "update_problem": lambda X: update_problem(SIGNALS, X, mu=0.1),
    "ReplaceAtoms": lambda X: ReplaceAtoms()(SIGNALS, DICTIONARY, X),
    "condition_number": lambda X: metrics.condition_number(DICTIONARY, X),
    "FixedSupport": lambda X: FixedSupport(X).encode(SIGNALS, DICTIONARY),
    "Lasso": lambda X: Lasso(alpha=0.1).encode(SIGNALS, DICTIONARY, codes=X),
    "squared_error": lambda X: squared_error(SIGNALS, DICTIONARY, X),
    "inverse_transform": lambda X: fitted_model().inverse_transform(X),  # refused before its shape is
}


def broken(make=scipy.sparse.csc_array):
    """Names and sparse arrays whose memory does not fit their shape, each broken in one way."""

    def change(name, value):
        matrix = make(CODES)
        setattr(matrix, name, value(getattr(matrix, name)))
        return matrix

    def at(place, value):
        def put(indptr):
            indptr = indptr.copy()
            indptr[place] = value
            return indptr

        return put

    yield "too large", change("indptr", at(3, 10**6))
    yield "negative", change("indptr", at(3, -5))
    yield "decreasing", change("indptr", at(3, 0))
    yield "beyond the data", change("indptr", at(-1, 10**6))
    yield "not from 0", change("indptr", at(0, 2))
    yield "too short", change("indptr", lambda indptr: indptr[:-1])
    yield "too long", change("indptr", lambda indptr: np.append(indptr, indptr[-1]))
    yield "few data", change("data", lambda data: data[:20])
    yield "few indices", change("indices", lambda indices: indices[:20])


def refuse_all():
    """Runs in a process of its own: where a check is missing, the process dies."""
    for make in (scipy.sparse.csc_array, scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        for way, matrix in broken(make):
            for name, read in READERS.items():
                try:
                    read(matrix)
                except ValueError as refusal:
                    assert str(refusal).endswith("."), (name, way, refusal)
                    continue
                raise AssertionError(f"{name} accepted a {make.__name__} with an indptr that is {way}")


def test_broken_sparse_arrays_are_refused_and_nothing_crashes():
    script = (
        "import sys; sys.path.insert(0, 'tests'); import test_refused_data; test_refused_data.refuse_all()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"


def test_broken_codes_in_a_file_are_refused(tmp_path):
    result = mdl.learn_dictionary(SIGNALS, D_, coder=OMP(sparsity=3), max_iter=1, rng=0)
    path = tmp_path / "result.npz"
    mdl.save(result, path)
    for way, matrix in broken():
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        arrays |= {f"codes/{name}": getattr(matrix, name) for name in ("data", "indices", "indptr")}
        np.savez(tmp_path / "broken.npz", **arrays)
        with pytest.raises(ValueError, match="is damaged"):
            mdl.load(tmp_path / "broken.npz")
            pytest.fail(way)


def test_allocated_entries_after_the_last_code_are_ignored():
    roomy = CODES.copy()
    roomy.indices = np.append(roomy.indices, [99, -7]).astype(roomy.indices.dtype)
    roomy.data = np.append(roomy.data, [np.nan, 1e300])
    expected, found = (KSVD()(SIGNALS, DICTIONARY, X) for X in (CODES, roomy))
    np.testing.assert_array_equal(found[0], expected[0])


# Masked arrays

MASKED = np.ma.masked_array(SIGNALS, mask=np.zeros(SIGNALS.shape, bool))
MASKED[3, 5] = 1e6
MASKED[3, 5] = np.ma.masked
MASKED_D = np.ma.masked_array(DICTIONARY)

WITH_SIGNALS = {
    "learn_dictionary": lambda Y: mdl.learn_dictionary(Y, D_, coder=OMP(sparsity=3), max_iter=1),
    "SimCO": lambda Y: SimCO(mu=0.1)(Y, DICTIONARY, CODES),
    "KSVD": lambda Y: KSVD()(Y, DICTIONARY, CODES),
    "MOD": lambda Y: MOD()(Y, DICTIONARY, CODES),
    "update_problem": lambda Y: update_problem(Y, CODES, mu=0.1),
    "ReplaceAtoms": lambda Y: ReplaceAtoms()(Y, DICTIONARY, CODES),
    "OMP": lambda Y: OMP(sparsity=3).encode(Y, DICTIONARY),
    "Lasso": lambda Y: Lasso(alpha=0.1).encode(Y, DICTIONARY),
    "FixedSupport": lambda Y: FixedSupport(CODES).encode(Y, DICTIONARY),
    "fit": lambda Y: mdl.ManifoldDictionaryLearning(D_, max_iter=1).fit(Y.T),
    "partial_fit": lambda Y: mdl.ManifoldDictionaryLearning(D_).partial_fit(Y.T),
    "transform": lambda Y: fitted_model().transform(Y.T),
    "score": lambda Y: fitted_model().score(Y.T),
    "denoise": lambda Y: images.denoise(Y, sigma=0.1, n_atoms=16, max_iter=1),
}

WITH_DICTIONARIES = {
    "init": lambda D: initial_dictionary(SIGNALS, D_, D, rng=0),
    "estimator's init": lambda D: mdl.ManifoldDictionaryLearning(init=D.T, max_iter=1).fit(SIGNALS.T),
    "SimCO": lambda D: SimCO(mu=0.1)(SIGNALS, D, CODES),
    "OMP": lambda D: OMP(sparsity=3).encode(SIGNALS, D),
    "coherence": metrics.coherence,
    "recovery": lambda D: metrics.recovery(DICTIONARY, D),
    "condition_number": lambda D: metrics.condition_number(D, CODES),
    "Tether": lambda D: mdl.regularizers.Tether(1.0, D),
}


@pytest.mark.parametrize("call", WITH_SIGNALS.values(), ids=WITH_SIGNALS)
def test_masked_signals_are_refused(call):
    with pytest.raises(TypeError, match="is a masked array: masked entries would be used as data"):
        call(MASKED)


TAKE_WEIGHTS = ["learn_dictionary", "SimCO", "MOD", "update_problem", "ReplaceAtoms", "OMP", "Lasso"]


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_functions_with_weights_name_them_where_entries_are_missing(name):
    with pytest.raises(TypeError, match=r"Give signals as `.data` with `weights=~mask`\.$"):
        WITH_SIGNALS[name](MASKED)
    signals = np.where(MASKED.mask, np.nan, MASKED.data)
    signals[4, 6] = np.nan
    fact = "signals holds nan at row 3, column 5, the first of 2 entries that are NaN or infinite"
    with pytest.raises(ValueError, match=fact) as refusal:
        WITH_SIGNALS[name](signals)
    assert str(refusal.value).endswith("give missing entries the weight 0 by `weights=`.")


@pytest.mark.parametrize("name", ["fit", "partial_fit", "transform", "score"])
def test_the_estimator_names_its_own_option_for_masked_arrays(name):
    with pytest.raises(TypeError, match=r"X\.filled\(np\.nan\)` with missing_values=np\.nan\.$") as refusal:
        WITH_SIGNALS[name](MASKED)
    assert "weights=" not in str(refusal.value)


def test_inpainting_names_its_mask_for_masked_arrays():
    masked = np.ma.masked_array(np.ones((20, 20)), mask=np.eye(20, dtype=bool))
    with pytest.raises(TypeError, match=r"Give its `.data` as the picture, and its mask as `mask`\.$"):
        images.inpaint(masked, masked.mask)


@pytest.mark.parametrize("weights", [None, np.ones(SIGNALS.shape)])
def test_validation_signals_with_missing_entries_are_refused_with_the_reason(weights):
    incomplete = np.where(MASKED.mask, np.nan, MASKED.data)
    options = {"coder": OMP(sparsity=3), "max_iter": 1, "weights": weights}
    sentence = "validation holds nan at row 3, column 5.*validation signals have no weights: give complete"
    with pytest.raises(ValueError, match=sentence):
        mdl.learn_dictionary(SIGNALS, D_, validation=incomplete, **options)
    with pytest.raises(TypeError, match=r"validation is a masked array.*no weights: give complete signals"):
        mdl.learn_dictionary(SIGNALS, D_, validation=MASKED, **options)


@pytest.mark.parametrize("call", WITH_DICTIONARIES.values(), ids=WITH_DICTIONARIES)
def test_masked_dictionaries_are_refused(call):
    with pytest.raises(TypeError, match="is a masked array"):
        call(MASKED_D)


def test_masked_codes_are_refused():
    codes = np.ma.masked_array(CODES.toarray())
    for name, read in READERS.items():
        with pytest.raises(TypeError, match="is a masked array"):
            read(codes)
            pytest.fail(name)


# Text and dates


@pytest.mark.parametrize(
    "rows",
    [
        SIGNALS.T.astype(str),
        SIGNALS.T.astype("S32"),
        SIGNALS.T.astype(str).astype(object),
        np.arange(N * M).reshape(N, M).astype("datetime64[s]"),
        np.arange(N * M).reshape(N, M).astype("timedelta64[s]"),
        np.arange(N * M).reshape(N, M).astype("datetime64[s]").astype(object),
    ],
    ids=["text", "bytes", "text in objects", "dates", "durations", "dates in objects"],
)
def test_the_estimator_refuses_text_and_dates(rows):
    model = mdl.ManifoldDictionaryLearning(D_, coder=OMP(sparsity=3), max_iter=1, random_state=0)
    for refuse in (model.fit, model.partial_fit, fitted_model().transform, fitted_model().score):
        with pytest.raises((ValueError, TypeError)) as refusal:
            refuse(rows)
        assert "real number" in str(refusal.value)


def test_objects_that_are_numbers_are_numbers():
    # scikit-learn's own checks ask for it: tables make such arrays.
    expected = fitted_model().components_
    found = fitted_model().fit(SIGNALS.T.astype(object)).components_
    np.testing.assert_array_equal(found, expected)


# Supports on which nothing can be learned


def full_support(size):
    rng = np.random.default_rng(1)
    rows = np.full((N, size), -1)
    rows[:, :3] = [rng.choice(D_, 3, replace=False) for _ in range(N)]
    rows[7] = rng.choice(D_, size, replace=False)
    dense = np.zeros((D_, N))
    for j, row in enumerate(rows):
        dense[row[row >= 0], j] = 1.0
    return scipy.sparse.csc_array(dense)


FOLLOWING = {
    "update_problem": lambda X, mu: update_problem(SIGNALS, X, mu=mu),
    "a part of the atoms": lambda X, mu: update_problem(
        SIGNALS, X, mu=mu, atoms=[0, 1], dictionary=DICTIONARY
    ),
    "SimCO": lambda X, mu: SimCO(mu=mu)(SIGNALS, DICTIONARY, X),
    "KSVD": lambda X, mu: KSVD(mu=mu)(SIGNALS, DICTIONARY, X),
}


@pytest.mark.parametrize("update", FOLLOWING.values(), ids=FOLLOWING)
def test_more_than_m_atoms_need_a_ridge(update):
    codes = full_support(M + 2)
    with pytest.raises(ValueError, match="signal 7 uses 10 atoms, more than its m=8 entries: with mu=0"):
        update(codes, 0.0)
    update(codes, 0.1)


@pytest.mark.parametrize("update", FOLLOWING.values(), ids=FOLLOWING)
def test_exactly_m_atoms_are_warned_about(update):
    with pytest.warns(UserWarning, match="signal 7 uses 8 atoms, as many as its m=8 entries"):
        update(full_support(M), 0.0)
    update(full_support(M), 0.1)
    update(full_support(M - 1), 0.0)


def test_a_signal_with_m_atoms_is_fitted_by_every_dictionary():
    # What the refusal says, computed by least squares.
    codes, rng = full_support(M), np.random.default_rng(2)
    support = codes.indices[codes.indptr[7] : codes.indptr[8]]
    for _ in range(3):
        A = rng.standard_normal((M, len(support)))
        x = np.linalg.lstsq(A, SIGNALS[:, 7], rcond=None)[0]
        # Rounding times the condition number of a random 8×8 matrix.
        assert np.linalg.norm(SIGNALS[:, 7] - A @ x) < 1e-10 * np.linalg.norm(SIGNALS[:, 7])


def test_codes_that_stay_may_have_any_support():
    # MOD's objective depends on D however large the supports are.
    D, _ = MOD()(SIGNALS, DICTIONARY, full_support(M + 2))
    SimCO(codes="fixed")(SIGNALS, DICTIONARY, full_support(M + 2))
    assert not np.allclose(D, DICTIONARY)


def test_a_loop_warns_once_about_supports_of_m_atoms():
    with pytest.warns(UserWarning, match="as many as its m=8 entries") as given:
        mdl.learn_dictionary(
            SIGNALS, D_, coder=OMP(sparsity=M), update=SimCO(mu=0.0), max_iter=3, rng=0, tol=0
        )
    assert len(given) == 1
