"""The lab with a component of somebody else's package, and without code, in a real browser."""

import os

import pytest
from chromium import HAS_DRIVER
from plugin_site import install

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2}
OPTIONS = "[...arguments[0].options].map(option => option.value)"


@pytest.fixture
def server(request, tmp_path):
    """A server with the options and the environment of the test."""
    from driven_page import Server

    options, has_plugin = request.param
    environment = {}
    if has_plugin:
        install(tmp_path)
        paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
        environment = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    server = Server(*options, environment=environment)
    yield server
    server.stop()


@pytest.mark.parametrize("server", [((), True)], indirect=True, ids=["plug-in"])
def test_components_of_an_installed_package_are_in_the_lists_and_run(page):
    page.open(**SMALL)
    lists = {
        "optimizer": "patient",
        "manifold": "plane",
        "regularizer": "peaks",
        "line_searcher": "halving",
        "schedule": "halves",
    }
    for control, name in lists.items():
        assert name in page.js(OPTIONS, page.inside(control, "dropdown", "select"))
    page.choose("optimizer", "patient")
    page.wait_for_code("from manifold_dl_example import Patient")
    page.choose("regularizer", "peaks")
    page.wait_for_code("Peaks(")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('svg path.run.last')?.getAttribute('d').includes('L')")
    page.choose("line_searcher", "halving")
    page.wait_for_code("line_searcher=Halving()")
    page.choose("schedule", "halves")
    page.wait_for_code("schedule = Halves()")


@pytest.mark.parametrize("server", [(("--no-code",), False)], indirect=True, ids=["no-code"])
def test_without_code_there_is_no_box_to_type_in_and_everything_else_runs(page):
    page.open(**SMALL)
    page.wait("document.querySelector('.mdl-verdict')")
    assert page.text(".mdl-verdict") == "Opened with --no-code: no text is executed."
    assert not page.js("document.querySelector('marimo-code-editor')")
    assert "own" not in page.js(OPTIONS, page.inside("regularizer", "dropdown", "select"))
    assert "Not with --no-code." in page.text("[data-mission=gradient]")
    page.click("Run")
    page.wait_for_state("finished")
