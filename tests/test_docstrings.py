"""Every public object is documented as numpydoc requires: a summary, all parameters, and what is returned.

Public are the names in ``manifold_dl/__init__.pyi`` and those of the modules among them: what they list in
``__all__`` or, without it, define without a leading underscore. Functions and classes are checked in full;
of a class that users receive and do not construct, the section Attributes will do instead of Parameters. So
are methods, but for those that implement a method which a protocol or a base class documents: these may name
no parameter that they do not have.
"""

import ast
import enum
import importlib
import inspect
import pkgutil
from itertools import chain
from types import ModuleType

import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

import manifold_dl

# Of numpydoc's checks, those about content; the others are about its preferred layout.
OF_OBJECTS = {
    "GL06",  # unknown section
    "GL07",  # sections in the wrong order
    "GL08",  # no docstring
    "PR01",  # undocumented parameter
    "PR02",  # unknown parameter
    "PR03",  # parameters in another order than in the signature
    "PR04",  # parameter without a type
    "RT01",  # no section Returns
    "SS01",  # no summary
    "SS03",  # summary without a full stop
    "SS06",  # summary of several lines
    "YD01",  # no section Yields
}
OF_IMPLEMENTATIONS = {"GL06", "GL07", "PR02", "SS01"}

# The folders with a module `protocol`.
WITH_PROTOCOLS = [
    "coders",
    "engines",
    "line_search",
    "manifolds",
    "optimizers",
    "regularizers",
    "schedules",
    "updates",
]


def public_modules():
    """The package itself and the modules among its public names."""
    modules = [name for name in manifold_dl.__all__ if isinstance(getattr(manifold_dl, name), ModuleType)]
    return [manifold_dl, *(importlib.import_module(f"manifold_dl.{name}") for name in modules)]


def public_names(module):
    if hasattr(module, "__all__"):
        return module.__all__
    own = (
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    )
    return [name for name in own if not name.startswith("_")]


def public_objects():
    """The full names of all public functions and classes, each once and where users import it from."""
    found = {}
    for module in public_modules():
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                found.setdefault(value, f"{module.__name__}.{name}")
    return sorted(found.values())


def public_methods():
    """The full names of the public methods and properties that public classes define themselves."""
    found = []
    for owner in public_objects():
        value = pkgutil.resolve_name(owner)
        members = vars(value).items() if inspect.isclass(value) else ()
        for name, member in members:
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                found.append(f"{owner}.{name}")
    return found


def declared_methods():
    """The names of the methods that a protocol of the package declares and documents."""
    modules = [importlib.import_module(f"manifold_dl.{folder}.protocol") for folder in WITH_PROTOCOLS]
    values = chain.from_iterable(vars(module).values() for module in [*modules, *public_modules()])
    members = (vars(value).items() for value in values if getattr(value, "_is_protocol", False))
    return {name for name, member in chain.from_iterable(members) if member.__doc__}


def implements(name):
    """Whether a method is one that a protocol declares, or that a base class has: Pymanopt's, or ours."""
    owner, _, method = name.rpartition(".")
    owner = pkgutil.resolve_name(owner)
    if getattr(owner, "_is_protocol", False):
        return False
    return method in declared_methods() or any(method in vars(base) for base in owner.__mro__[1:])


def faults(name, codes):
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code in codes]


def counts(fault, value):
    """Whether it is a fault: a parameter may be described as an attribute, or be none that users pass."""
    if not fault.startswith("PR01") or not inspect.isclass(value):
        return True
    if issubclass(value, (enum.Enum, Exception)) or getattr(value, "_is_protocol", False):
        return False
    missing = ast.literal_eval(fault[fault.index("{") : fault.index("}") + 1])
    described = {name for entry in ClassDoc(value)["Attributes"] for name in entry.name.split(", ")}
    return not missing <= described


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_public_module_says_what_it_holds(module):
    assert module.__doc__


@pytest.mark.parametrize("name", public_objects())
def test_public_object_is_documented_completely(name):
    value = pkgutil.resolve_name(name)
    found = [fault for fault in faults(name, OF_OBJECTS) if counts(fault, value)]
    assert not found, "; ".join(found)


@pytest.mark.parametrize("name", public_methods())
def test_public_method_is_documented_completely(name):
    found = faults(name, OF_IMPLEMENTATIONS if implements(name) else OF_OBJECTS)
    assert not found, "; ".join(found)
