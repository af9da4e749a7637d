"""The registry of components: what may be registered, and under which name it is found."""

import pytest

from manifold_dl import OMP, ReplaceAtoms, SimCO
from manifold_dl.components import registry
from manifold_dl.updates.ridge import TwoStep


@pytest.fixture
def kinds(monkeypatch):
    """An empty kind of coders, so that the real ones stay as they are."""
    monkeypatch.setitem(registry._KINDS, "coders", registry.Kind("encode"))


def coder(name, **attributes):
    return type(name, (), {"encode": lambda self, signals, dictionary: None, **attributes})


def test_registered_component_is_found_by_any_spelling(kinds):
    made = coder("NearestAtom")
    registry.register("coders", made)
    for name in ("NearestAtom", "nearest-atom", "nearest_atom", "NEARESTATOM"):
        assert registry.get("coders", name) is made
    assert registry.available("coders") == ["NearestAtom"]
    assert registry.name_of(made) == ("coders", "NearestAtom")


def test_component_that_needs_more_than_a_name_is_found_and_not_listed(kinds):
    made = coder("Given")
    registry.register("coders", made, needs="a support: Given(support)")
    assert registry.available("coders") == []
    assert registry.get("coders", "given") is made
    assert registry.what_it_needs(made) == "a support: Given(support)"


def test_component_without_the_method_of_its_kind_is_refused(kinds):
    with pytest.raises(TypeError, match="Mute has no method encode, which its kind, coders, requires"):
        registry.register("coders", type("Mute", (), {}))


def test_second_component_of_a_name_is_refused(kinds):
    made = coder("Same")
    registry.register("coders", made)
    registry.register("coders", made)  # the same one again: a module that is imported twice
    with pytest.raises(ValueError, match="the name Same is taken among the coders"):
        registry.register("coders", coder("Same"))


def test_kinds_that_occur_in_settings_alone_are_not_listed():
    assert registry.name_of(TwoStep) == ("ridges", "TwoStep")
    assert registry.name_of(ReplaceAtoms) == ("replacement", "ReplaceAtoms")
    assert not {"ridges", "replacement"} & set(registry.available())


def test_objects_and_unregistered_classes_have_no_name():
    assert registry.name_of(OMP(sparsity=2)) is None
    assert registry.name_of(type("SimCO", (SimCO,), {})) is None
    assert registry.what_it_needs(object()) is None
