"""The missions in a real browser, each completed as a user would; two more are in test_browser.py."""

import pytest
from chromium import HAS_DRIVER

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")


def set_up(page, key, code):
    page.open()
    page.click("Set it up", f"[data-mission='{key}']")
    page.wait_for_code(code)


def run(page):
    page.click("Run")
    page.wait_for_state("finished")


def solved(page, key):
    page.wait("document.querySelector(`[data-mission='${arguments[0]}'].done`)", key)
    return page.text(f"[data-mission='{key}'] .mdl-solved")


def test_a_ridge_leads_out_of_a_singular_point(page):
    set_up(page, "singular", "synthetic(16, 32, 78")
    page.choose("ridge", "several, in turn")
    page.type("mu", "0, 0.1, 0.01, 0")
    page.wait_for_code("for mu in [0.0, 0.1, 0.01, 0.0]:")
    run(page)
    assert solved(page, "singular").startswith("Stuck at κ = ")


def test_ksvd_is_made_out_of_simco(page):
    set_up(page, "ksvd", "synthetic(8, 12, 200")
    run(page)
    page.choose("schedule", "OneAtATime")
    page.wait_for_code("schedules.OneAtATime()")
    assert not page.js("document.querySelector('[data-mission=ksvd].done')")
    page.choose("optimizer", "LeadingSingularVector")
    page.wait_for_code("optimizers.LeadingSingularVector(")
    run(page)
    assert "have the same 12 atoms" in solved(page, "ksvd")


def test_a_start_in_the_bad_set_is_typed_from_the_numbers_below_the_sphere(page):
    set_up(page, "bad set", "synthetic(3, 1, 10")
    atom = "document.querySelector('.mdl-atom')?.textContent"
    begin = page.wait(atom)
    run(page)
    a, b, _ = map(float, page.wait(f"{atom} !== arguments[0] && {atom}", begin).split())
    page.choose("start", "typed")
    page.wait("document.querySelector('[data-control=typed]')")
    page.type("typed", f"{b:.10f} {-a:.10f} 0")
    page.wait_for_code("D = np.array([[")
    run(page)
    assert "away from the best atom" in solved(page, "bad set")


def test_a_regularizer_halves_the_coherence(page):
    set_up(page, "coherence", "synthetic(16, 32, 30")
    run(page)
    page.choose("regularizer", "Coherence")
    page.wait_for_code("regularizers.Coherence(")
    run(page)
    assert solved(page, "coherence").startswith("Coherence ")
