"""What all checks have in common: exceptions become faults, and classes are refused."""

import pytest

import manifold_dl as mdl
from manifold_dl.diagnostics import (
    CheckFailed,
    check_coder,
    check_line_searcher,
    check_optimizer,
    check_schedule,
    check_update,
)


def test_exceptions_and_wrong_signatures_of_components_become_faults():
    class Broken:
        def __call__(self, signals, dictionary):
            return dictionary

        def encode(self, signals):
            return signals

        def search(self, *arguments):
            raise KeyError("x")

        def subsets(self, n_atoms, rng=None):
            raise KeyError("x")

    with pytest.raises(
        CheckFailed, match=r"Broken cannot be called with 3 arguments: .*\(signals, dictionary\)"
    ):
        check_update(Broken())
    with pytest.raises(CheckFailed, match=r"Broken cannot be called with 2 arguments: encode\(signals\)"):
        check_coder(Broken())
    with pytest.raises(CheckFailed, match="Broken raised KeyError: 'x'"):
        check_line_searcher(Broken())
    with pytest.raises(CheckFailed, match="Broken raised KeyError: 'x'"):
        check_schedule(Broken())


@pytest.mark.parametrize("check", [check_coder, check_line_searcher, check_optimizer, check_update])
def test_checks_refuse_a_class_in_place_of_an_object(check):
    with pytest.raises(TypeError, match=r"LBFGS is a class; pass an object of it, LBFGS\(\.\.\.\)"):
        check(mdl.LBFGS)
    with pytest.raises(TypeError, match="None has no method"):
        check(None)
