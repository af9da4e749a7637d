"""The lab as a user has it: a server process, and a real browser without a screen.

`make test-browser` installs the browser and runs these tests.
"""

import contextlib
import io
import urllib.request

import pytest
from chromium import HAS_DRIVER

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2}


def test_without_the_token_nothing_is_served(server):
    answer = urllib.request.urlopen(server.origin, timeout=30)
    assert "login" in answer.geturl() and b"mdl-sphere" not in answer.read()


def test_a_run_draws_the_curve_and_changes_the_numbers(page):
    page.open(**SMALL)
    assert not page.js("document.querySelector('.mdl-tile')")
    page.choose("optimizer", "TrustRegions")
    page.choose("manifold", "Lines")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('svg path.run.last')?.getAttribute('d').includes('L')")
    page.wait_for_number("atoms found", "12 of 12")
    assert page.value() < 1e-6
    page.click("Run")  # again: a second curve, and the first one is pale
    page.wait("document.querySelectorAll('svg path.run.pale').length === 1")
    page.click("✕", ".mdl-runs:has(.mdl-run + .mdl-run) .mdl-run:last-child")
    page.wait("document.querySelectorAll('.mdl-figure path.run.pale').length === 0")


def test_each_step_advances_by_one_accepted_iterate(page):
    page.open(**SMALL)
    values = []
    for count in (1, 2, 3):
        page.click("Step ▸")
        page.wait("document.querySelector('.mdl-status')?.dataset.steps === String(arguments[0])", count)
        page.wait("document.querySelector('.mdl-tiles')?.dataset.step === String(arguments[0])", count)
        values.append(page.value())
    page.wait("document.querySelector('svg circle.accepted')")
    assert len(set(values)) == 3 and sorted(values, reverse=True) == values
    assert page.js("document.querySelectorAll('svg text.number').length") >= 3  # numbered probes
    page.click("Run")
    page.wait_for_state("finished")
    assert page.steps() > 3


def test_stop_ends_a_long_run_and_keeps_what_there_is(page):
    page.open(m=64, d=128, n=2000, sparsity=8, noise=50, schedule="OneAtATime", sweeps=50)
    page.click("Run")
    page.wait("/step [1-9].* left/.test(document.querySelector('.mdl-status')?.textContent)")
    first = page.steps()
    page.wait(
        "Number(document.querySelector('.mdl-status').dataset.steps) > arguments[0]", first
    )  # it streams
    page.click("Stop")
    page.wait_for_state("stopped")
    assert page.steps() > 0
    page.wait("document.querySelector('svg path.run.last')?.getAttribute('d').includes('L')")


def test_a_bad_input_is_explained_beside_its_control(page):
    page.open(**SMALL)
    page.type("mu", "0.1, x")
    page.wait("document.querySelector('[data-control=mu] .mdl-message')")
    assert page.message("mu") == "mu='0.1, x': give one number, or several separated by commas."
    assert "Not possible" in page.text(".mdl-status")
    page.type("mu", "0.1, 0")
    page.wait("document.querySelector('[data-control=mu] .mdl-message')?.textContent.startsWith('mu has 2')")
    page.choose("ridge", "several, in turn")
    page.wait("!document.querySelector('[data-control=mu] .mdl-message')")
    page.click("Run")
    page.wait_for_state("finished")


def test_a_schedule_of_the_ridge_is_chosen_and_its_numbers_are_shown(page):
    page.open(**SMALL, mu="0.1")
    assert not page.js("document.querySelector('[data-control=turns]')")
    page.choose("ridge", "continuation to 0")
    page.wait("document.querySelector('[data-control=turns]')")
    assert page.text("[data-control=mu] .mdl-hint") == "μ in turn: 0.1, 0.01, 0.001, 0.0001, 0"
    page.wait_for_code("for mu in [0.1, 0.01, 0.001, 0.0001, 0.0]:")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait_for_number("atoms found", "12 of 12")


def test_options_that_do_not_go_together_are_disabled_with_the_reason(page):
    page.open(**SMALL)
    disabled = "[...arguments[0].options].filter(option => option.disabled).map(option => option.value)"
    optimizers = page.inside("optimizer", "dropdown", "select")
    page.wait(f"{disabled}.length > 0", optimizers)
    assert page.js(disabled, optimizers) == ["LeadingSingularVector"]
    reason = page.text("[data-control=optimizer] .mdl-reasons li")
    assert "LeadingSingularVector updates one atom at a time: use a schedule like OneAtATime()." in reason
    page.choose("schedule", "OneAtATime")
    page.wait(f"{disabled}.length === 0", optimizers)
    page.wait_for_code("schedules.OneAtATime()")
    page.choose("optimizer", "LeadingSingularVector")
    page.wait("document.querySelectorAll('[data-control=line_searcher] .mdl-reasons li').length === 4")


def test_a_wrong_regularizer_is_found_by_the_check_and_completes_its_mission(page):
    page.open(**SMALL)
    page.wait("document.querySelector('.mdl-verdict.right')")
    page.write_regularizer("def R(D):\n return np.sum(D**4)\ndef gradient(D):\n return 3.9 * D**3\n")
    page.wait("document.querySelector('.mdl-verdict.wrong')")
    assert "The gradient is wrong: the first-order remainder falls with slope 1.00" in page.text(
        ".mdl-verdict"
    )
    page.wait("document.querySelector('[data-mission=gradient].done')")
    page.write_regularizer("def R(D):\n return foo(D)\n")
    page.wait("document.querySelector('.mdl-verdict')?.textContent.includes('foo')")


def test_a_regularizer_of_ones_own_is_used_in_a_run(page):
    page.open(**SMALL)
    page.write_regularizer("def R(D):\n return np.sum(D**4)\n")
    own = "[...arguments[0].options].find(option => option.value === 'own')?.disabled === false"
    page.wait(own, page.inside("regularizer", "dropdown", "select"))
    page.choose("regularizer", "own")
    page.wait("document.querySelector('[data-control=weight]')")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait_for_code("np.sum(D**4)")


def test_a_mission_is_set_up_and_completed(page):
    page.open()
    page.click("Set it up", "[data-mission=fast]")
    page.wait_for_code("max_iterations=300")
    page.choose("optimizer", "TrustRegions")
    page.wait_for_code("TrustRegions")
    page.click("Run")
    page.wait("document.querySelector('[data-mission=fast].done')")
    assert "TrustRegions reached 10⁻⁶" in page.text("[data-mission=fast] .mdl-solved")


def test_the_code_that_is_copied_gives_the_same_numbers(page):
    page.open(**SMALL, optimizer="LBFGS", ridge="in turn", mu="0.1, 0.01", noise=10)
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('.mdl-tiles')?.dataset.value")
    namespace, output = {}, io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(page.copied("Copy the code"), namespace)
    assert namespace["problem"].cost(namespace["D"]) == page.value()  # the same bits, by the same calls
    assert output.getvalue().startswith(f"objective {page.value():.8g}")


def test_a_shared_address_brings_the_settings_and_no_code(page):
    page.open(**SMALL)
    page.choose("optimizer", "ConjugateGradient")
    page.wait_for_code("ConjugateGradient")
    page.type("mu", "0.05")
    page.wait_for_code("mu=0.05")
    page.write_regularizer("def R(D):\n return np.sum(D**6)\n")
    own = "[...arguments[0].options].find(option => option.value === 'own')?.disabled === false"
    page.wait(own, page.inside("regularizer", "dropdown", "select"))
    page.choose("regularizer", "own")
    page.wait("location.search.includes('mu=0.05')")
    link = page.copied("Copy the link to these settings")
    assert "ConjugateGradient" in link and "access_token" not in link and "D**6" not in link
    page.driver.get(link)
    page.wait_for_code("ConjugateGradient")
    code = page.text(".mdl-code code")
    assert "mu=0.05" in code and "synthetic(8, 12, 100, sparsity=2" in code
    assert "D**6" not in page.js("document.body.innerHTML")


def test_the_sphere_is_turned_by_the_keyboard(page):
    page.open(m=3, d=4, n=60, sparsity=1)
    page.click("Run")
    page.wait_for_state("finished")
    sphere = page.wait("document.querySelector('mdl-sphere[data-drawn]')")
    before = page.js("arguments[0].dataset.drawn", sphere)
    page.driver.execute_script("arguments[0].focus()", sphere)
    sphere.send_keys("\ue012")  # the left arrow
    page.wait("document.querySelector('mdl-sphere').dataset.drawn !== arguments[0]", before)
