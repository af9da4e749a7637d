"""How a user looks at a run, in a real browser: the axis, the step, the sphere; and what is not redrawn."""

import re

import pytest
from chromium import HAS_DRIVER
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2}
CURVE = "[data-cell-name=_views] svg"
FIGURES = "document.querySelector('.mdl-figures').dataset.step"


def step(page, count):
    page.click("Step ▸")
    page.wait(f"{FIGURES} === String(arguments[0])", count)


def test_a_lasso_is_chosen_and_run_and_needs_no_support(page):
    page.open(**SMALL)
    page.choose("problem", "lasso_problem")
    page.wait("document.querySelector('[data-control=alpha]')")
    page.type("alpha", "0.3, 0.1")
    page.wait_for_code("mdl.lasso_problem(Y, 12, alpha=alpha")
    assert "support" not in page.text(".mdl-code code")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('svg path.run.last')?.getAttribute('d').includes('L')")
    assert page.value() > 0


def test_the_switch_changes_the_axis_of_the_curve(page):
    page.open(**SMALL)
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('svg path.run.last')?.getAttribute('d').includes('L')")
    drawn = [page.js("document.querySelector('svg path.run.last').getAttribute('d')")]
    for measure, name in (("evaluations", "evaluations"), ("seconds", "seconds of computing")):
        choose = (
            "[...document.querySelector('[data-cell-name=_views] marimo-radio').shadowRoot"
            ".querySelectorAll('button')].find(button => button.value.endsWith(arguments[0])"
            " || button.parentElement.textContent.trim() === arguments[0])?.click() === undefined"
        )
        page.wait(choose, measure)
        page.wait(
            f"document.querySelector('{CURVE}').getAttribute('aria-label').endsWith(arguments[0])", name
        )
        texts = "[...document.querySelectorAll(arguments[0])].map(text => text.textContent)"
        assert name in page.js(texts, f"{CURVE} text.name")
        drawn.append(page.js("document.querySelector('svg path.run.last').getAttribute('d')"))
    assert len(set(drawn)) == 3


def test_the_slider_chooses_the_step_whose_search_is_shown(page):
    page.open(**SMALL)
    accepted = []
    for count in (1, 2, 3):
        step(page, count)
        accepted.append(page.text("svg .accepted-name"))
    value = page.value()
    thumb = "document.querySelector('.mdl-step marimo-slider')?.shadowRoot?.querySelector('[role=slider]')"
    slider = page.wait(thumb)
    page.driver.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.ARROW_LEFT)
    page.wait(f"{FIGURES} === '2'")
    assert page.text("svg .accepted-name") == accepted[1] != accepted[2]
    page.wait("document.querySelector('.mdl-tiles').dataset.step === '2'")
    assert page.value() > value
    assert page.js("document.querySelector('svg circle.chosen') !== null")
    # What has nothing to do with the run leaves the choice as it is: a mission that is completed elsewhere.
    page.write_regularizer("def R(D):\n return np.sum(D**4)\ndef gradient(D):\n return 3.9 * D**3\n")
    page.wait("document.querySelector('[data-mission=gradient].done')")
    assert page.js(FIGURES) == "2"
    step(page, 4)  # another step is shown at once


def test_the_sphere_is_turned_by_dragging(page):
    page.open(m=3, d=4, n=60, sparsity=1)
    sphere = page.wait("document.querySelector('mdl-sphere[data-drawn]')")
    page.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", sphere)
    before = page.js("arguments[0].dataset.drawn.split(' ').map(Number)", sphere)
    ActionChains(page.driver).drag_and_drop_by_offset(sphere, 60, 24).perform()
    after = page.js("document.querySelector('mdl-sphere').dataset.drawn.split(' ').map(Number)")
    # 120 pixels are one radian; a drag may begin and end with a fraction of a pixel
    assert after[1] - before[1] == pytest.approx(0.5, abs=0.02)
    assert after[2] - before[2] == pytest.approx(0.2, abs=0.02)


def test_a_step_redraws_neither_controls_nor_code_nor_missions(page):
    page.open(**SMALL)
    step(page, 1)
    page.driver.execute_script(
        "window.redrawn = []; for (const name of ['_panel', '_code', '_missions', '_own'])"
        "new MutationObserver(() => window.redrawn.push(name)).observe("
        "document.querySelector(`[data-cell-name=${name}]`), "
        "{ childList: true, subtree: true, characterData: true, attributes: true })"
    )
    step(page, 2)
    step(page, 3)  # whatever the step before has sent is drawn by now
    assert page.js("window.redrawn") == []


def test_a_regularizer_that_becomes_wrong_while_it_is_chosen_is_explained(page):
    page.open(**SMALL)
    own = "[...arguments[0].options].find(option => option.value === 'own')?.disabled === false"
    page.wait(own, page.inside("regularizer", "dropdown", "select"))
    page.choose("regularizer", "own")
    page.wait_for_code("def R(D)")
    page.write_regularizer("def R(D):\n return foo(D)\n")
    page.wait("document.querySelector('[data-control=regularizer] .mdl-message')")
    assert page.message("regularizer") == "There is no regularizer of your own yet that passes its check."
    page.write_regularizer("def R(D):\n return np.sum(D**4)\n")
    page.wait("!document.querySelector('[data-control=regularizer] .mdl-message')")
    page.wait_for_code("np.sum(D**4)")
    page.click("Run")
    page.wait_for_state("finished")


def test_a_run_that_fails_says_why_in_the_words_of_the_error(page):
    page.open(**SMALL)
    page.write_regularizer(
        "calls = []\ndef R(D):\n return np.sum(D**4)\n"
        "def gradient(D):\n calls.append(1)\n"
        " if D.shape[1] == 12 and len(calls) > 40: raise ValueError('no more than 40 gradients')\n"
        " return 4 * D**3\n"
    )
    page.wait("document.querySelector('.mdl-verdict.right')")
    page.choose("regularizer", "own")
    page.wait_for_code("no more than 40")
    page.click("Run")
    page.wait_for_state("failed")
    assert re.search("^failed after [0-9]+ steps: .*no more than 40 gradients", page.text(".mdl-status"))
