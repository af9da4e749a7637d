"""What a page meets in practice, in a real browser: two tabs, a reload, hostile addresses, impatience."""

import pytest
from chromium import HAS_DRIVER

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2}
LONG = {"m": 64, "d": 128, "n": 2000, "sparsity": 8, "noise": 50, "schedule": "OneAtATime", "sweeps": 50}
STREAMS = "/step [1-9].* left/.test(document.querySelector('.mdl-status')?.textContent)"


def test_two_tabs_have_runs_of_their_own(page):
    first = page.driver.current_window_handle
    page.open(**LONG)
    page.click("Run")
    page.wait(STREAMS)
    page.driver.switch_to.new_window("tab")
    try:
        page.open(**SMALL)
        assert page.text(".mdl-status") == "Ready."
        page.click("Run")
        page.wait_for_state("finished")
        page.wait("document.querySelectorAll('.mdl-run').length === 1")
    finally:
        page.driver.close()
        page.driver.switch_to.window(first)
    page.wait(STREAMS)
    page.click("Stop")
    page.wait_for_state("stopped")


def test_a_reload_during_a_run_keeps_the_settings_and_begins_anew(page):
    page.open(**LONG)
    page.wait("location.search.includes('sweeps=50')")
    page.click("Run")
    page.wait(STREAMS)
    page.driver.refresh()
    page.wait("document.querySelector('.mdl-status')?.textContent === 'Ready.'")
    page.wait_for_code("synthetic(64, 128, 2000, sparsity=8")
    page.click("Step ▸")
    page.wait("document.querySelector('.mdl-status')?.dataset.steps === '1'")


@pytest.mark.parametrize(
    ("settings", "control", "words"),
    [
        ({"m": 10**9}, "m", "outside of 2 to 64"),
        ({"mu": "<script>document.title = 'taken'</script>"}, "mu", "give one number"),
        ({"manifold": "<img src=x onerror=\"document.title = 'taken'\">"}, "manifold", "There is no '<img"),
        ({"optimizer": "__import__('os')"}, "optimizer", "among the optimizers"),
        ({"regularizer": "own", "text": "def R(D): return 0"}, "regularizer", "An address brings no code"),
        ({"data": "file"}, "file", "Choose a file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_hostile_address_is_answered_beside_the_control(settings, control, words, page):
    page.open(**{**SMALL, **settings})
    message = "document.querySelector(`[data-control='${arguments[0]}'] .mdl-message`)?.textContent"
    assert words in page.wait(message, control)
    assert page.js("document.title") != "taken"


def test_stop_while_kernels_are_compiled_ends_the_run(page_without_cache):
    page = page_without_cache
    page.open(**SMALL, optimizer="LBFGS", line_searcher="WolfeSearch", noise=10)
    page.click("Run")
    page.click("Stop")
    page.wait("['stopped', 'finished'].includes(document.querySelector('.mdl-status')?.dataset.state)")
    page.click("Run")
    page.wait_for_state("finished")


@pytest.fixture
def page_without_cache(driver, tmp_path):
    from driven_page import Server, watched_page

    server = Server(environment={"NUMBA_CACHE_DIR": str(tmp_path)})
    with watched_page(driver, server) as page:
        yield page
    server.stop()


def test_ctrl_c_ends_the_server_while_a_page_is_open(driver):
    from driven_page import Page, Server

    server = Server()
    page = Page(driver, server).open(**SMALL)
    page.click("Run")
    page.wait_for_state("finished")
    server.stop()  # which kills what has not ended after 10 s
    driver.get("about:blank")
    page.requests_elsewhere(), page.console_errors()  # that the connection was lost
    assert server.process.returncode == 0
