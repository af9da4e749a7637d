"""The digest by which the cache finds a dictionary: equal for equal numbers, another for any others."""

import numpy as np
import pytest

from manifold_dl.kernels import digest as module
from manifold_dl.kernels.digest import SMALL, digest


@pytest.fixture(params=["compiled", "without Numba"])
def implementation(request, monkeypatch):
    if request.param == "without Numba":
        monkeypatch.setattr(module, "NUMBA_INSTALLED", False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [20_000, 20_001, 20_002, 20_003])
def test_change_of_any_one_number_changes_the_digest(implementation, n, dtype):
    array = np.random.default_rng(0).standard_normal(n).astype(dtype)
    known = {digest(array)}
    places = [*range(8), *range(n - 8, n), n // 2]
    for place in places:
        changed = array.copy()
        changed[place] = np.nextafter(changed[place], dtype(9))
        known.add(digest(changed))
    assert len(known) == 1 + len(places)
    assert {len(key) for key in known} == {16}
    assert digest(array.copy()) in known


def test_exchanged_and_negated_numbers_have_another_digest(implementation):
    array = np.random.default_rng(0).standard_normal((100, 200))
    others = [-array, array[::-1].copy(), array[:, ::-1].copy(), np.roll(array, 4), np.roll(array, 1, axis=0)]
    assert len({digest(one) for one in [array, *others]}) == 6


def test_few_numbers_stand_for_themselves():
    array = np.arange(SMALL // 8, dtype=float)
    assert digest(array) == array.tobytes()
    assert len(digest(np.zeros(SMALL // 8 + 1))) == 16
