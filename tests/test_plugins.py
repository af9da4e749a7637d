"""Components by name, ours and those of a real package that is installed here by pip."""

import os
import subprocess
import sys

import numpy as np
import pymanopt.optimizers
import pytest
from plugin_site import install

import manifold_dl as mdl
from manifold_dl import plugins
from manifold_dl.diagnostics import check_coder, check_manifold, check_regularizer, check_update

MODULES = ["manifold_dl_example", "manifold_dl_broken"]

# Two of its entry points are left out whenever the kind is looked at; the tests about them say so.
LEFT_OUT = "ignore:.*is left out:manifold_dl.plugins.PluginWarning"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which the package was installed, as into any environment; no network is needed."""
    folder = tmp_path_factory.mktemp("site-packages")
    install(folder)
    return folder


@pytest.fixture
def installed(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    yield site
    for name in MODULES:
        sys.modules.pop(name, None)


def test_our_own_components_are_found_by_name():
    assert plugins.get("coders", "OMP") is mdl.OMP
    assert plugins.get("updates", "ksvd") is mdl.KSVD
    assert plugins.get("manifolds", "spheres") is mdl.manifolds.Spheres
    assert plugins.get("regularizers", "coherence") is mdl.regularizers.Coherence
    assert plugins.get("schedules", "one-at-a-time") is mdl.schedules.OneAtATime
    assert plugins.get("line_searchers", "golden_section") is mdl.GoldenSection
    assert plugins.get("optimizers", "lbfgs") is mdl.LBFGS
    assert plugins.get("manifolds", "stiefel") is pymanopt.manifolds.Stiefel
    assert plugins.get("manifolds", "oblique") is pymanopt.manifolds.Oblique
    searcher = pymanopt.optimizers.line_search.BackTrackingLineSearcher
    assert plugins.get("line_searchers", "back-tracking-line-searcher") is searcher
    assert plugins.get("optimizers", "conjugate-gradient") is pymanopt.optimizers.ConjugateGradient


def test_what_is_no_component_is_not_listed():
    names = plugins.available()
    assert list(names) == list(plugins.KINDS)
    assert not {"Regularizer", "differentiable", "OutsideBound"} & set(names["regularizers"])
    # Made of other components, or of data: their names alone say too little.
    assert not {"Scaled", "Sum"} & set(names["regularizers"])
    assert not {"Columns", "SpheresWithin", "Subspace"} & set(names["manifolds"])
    assert plugins.get("manifolds", "Columns") is mdl.manifolds.Columns
    assert not {"OptimizerRun"} & set(names["optimizers"])
    assert not {"Schedule", "dataclass", "sweep"} & set(names["schedules"])
    assert set(names["updates"]) == {"AtomSearch", "KSVD", "MOD", "SimCO"}


def test_unknown_name_is_refused_with_similar_names():
    with pytest.raises(LookupError, match=r"no 'forwardselect' among the coders.*ForwardSelection"):
        plugins.get("coders", "forwardselect")
    with pytest.raises(LookupError, match="Known are AtomSearch, KSVD, MOD, SimCO"):
        plugins.get("updates", "zzz")
    with pytest.raises(ValueError, match="kind='recipes' is unknown; the kinds are coders"):
        plugins.available("recipes")


@pytest.mark.filterwarnings(LEFT_OUT)
def test_an_installed_package_is_listed_without_being_imported(installed):
    names = plugins.available()
    assert "nearest" in names["coders"]
    assert "peaks" in names["regularizers"]
    assert not set(MODULES) & set(sys.modules)


@pytest.mark.filterwarnings(LEFT_OUT)
def test_every_kind_can_be_registered_and_passes_our_checks(installed):
    assert check_coder(plugins.get("coders", "Nearest")())
    assert check_update(plugins.get("updates", "resting")())
    assert check_manifold(plugins.get("manifolds", "plane")(4, 3))
    assert check_regularizer(plugins.get("regularizers", "peaks")(weight=2.0))
    assert plugins.get("optimizers", "patient")(verbosity=0).run
    assert plugins.get("line_searchers", "halving")().search
    halves = [half.tolist() for half in plugins.get("schedules", "halves")().subsets(4, None)]
    assert halves == [[0, 1], [2, 3]]


@pytest.mark.filterwarnings(LEFT_OUT)
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("broken", "ImportError: this plug-in needs a library that is not installed"),
        ("misspelt", "AttributeError: .* has no attribute 'Nearset'"),
        ("mute", "has no method encode, which its kind, coders, requires"),
    ],
)
def test_broken_plugin_is_named_with_its_package_and_error(installed, name, fault):
    with pytest.raises(
        plugins.PluginError, match=f"'coders.{name}' of the package manifold-dl-example.*{fault}"
    ):
        plugins.get("coders", name)


def test_broken_plugins_are_reported_by_name_and_the_rest_is_loaded(installed):
    with pytest.warns(plugins.PluginWarning) as caught:
        coders = plugins.load("coders")
    assert {"OMP", "Lasso", "nearest"} <= set(coders)
    assert not {"broken", "misspelt", "mute"} & set(coders)
    messages = " ".join(str(warning.message) for warning in caught)
    for name in ("coders.broken", "coders.misspelt", "coders.mute", "coders.omp", "recipes.cake"):
        assert repr(name) in messages


def test_taken_names_and_unknown_kinds_of_plugins_are_left_out(installed):
    with pytest.warns(plugins.PluginWarning) as caught:
        assert plugins.get("coders", "omp") is mdl.OMP
    messages = " ".join(str(warning.message) for warning in caught)
    assert "'coders.omp' of the package manifold-dl-example" in messages
    assert "taken by manifold_dl itself" in messages
    assert "'recipes.cake'" in messages
    assert "does not begin with a kind" in messages


def test_plugin_coder_is_used_in_learning(installed):
    with pytest.warns(plugins.PluginWarning):
        coder = plugins.get("coders", "nearest")()
    _, _, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=2, rng=0)
    result = mdl.learn_dictionary(Y, n_atoms=12, coder=coder, update=mdl.KSVD(), max_iter=3, rng=0)
    assert result.history.loss[-1] < result.history.loss[0]


def test_the_command_line_finds_plugins_by_name(site, tmp_path):
    np.save(tmp_path / "signals.npy", np.random.default_rng(0).standard_normal((60, 8)))
    fixed = [
        "--atoms",
        "12",
        "--sparsity",
        "2",
        "--iterations",
        "2",
        "--out",
        "model.npz",
        "--force",
        "--json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def learn(*options):
        command = [sys.executable, "-m", "manifold_dl", "learn", "signals.npy", *fixed, *options]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    for options in (
        ["--coder", "nearest", "--update", "resting"],
        ["--solver", "patient", "--manifold", "plane", "--regularizer", "peaks:0.1"],
    ):
        done = learn(*options)
        assert done.returncode == 0, done.stderr
    refused = learn("--coder", "broken")
    assert refused.returncode == 2
    assert "broken" in refused.stderr
    assert "Traceback" not in refused.stderr
