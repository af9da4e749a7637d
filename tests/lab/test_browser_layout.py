"""What the page looks like, as far as numbers tell: wide and narrow, light and dark."""

import pytest
from chromium import HAS_DRIVER

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")

BOXES = (
    "[...document.querySelectorAll(arguments[0])].map(element => {"
    "const box = element.getBoundingClientRect(), hidden = element.scrollWidth - element.clientWidth;"
    "return [box.left, box.top, box.right, box.bottom, hidden] })"
)


@pytest.fixture
def shown(request, page):
    """The page with a run on the sphere, in the width and the theme of the test."""
    width, theme = request.param
    feature = {"name": "prefers-color-scheme", "value": theme}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    page.driver.set_window_size(width, 900)
    page.open(m=3, d=4, n=60, sparsity=1)
    page.wait(f"document.body.classList.contains('{theme}')")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('mdl-sphere[data-drawn]') && document.querySelector('.mdl-step')")
    yield page
    page.driver.set_window_size(1280, 900)
    light = {"name": "prefers-color-scheme", "value": "light"}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [light]})


LOOKS = [(width, theme) for width in (1280, 800) for theme in ("light", "dark")]


@pytest.mark.parametrize("shown", LOOKS, indirect=True, ids=lambda look: f"{look[0]}-{look[1]}")
def test_cards_neither_overlap_nor_leave_the_page_nor_stand_half_empty(shown):
    boxes = shown.js(BOXES, ".mdl-card, .mdl-section")
    inner = shown.js("document.documentElement.clientWidth")
    assert len(boxes) >= 9
    for k, (left, top, right, bottom, hidden) in enumerate(boxes):
        assert left >= 0 and right <= inner and hidden <= 0
        for other in boxes[:k]:  # side by side, or one below the other
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    cards = shown.js(BOXES, ".mdl-figures > .mdl-card")
    ends = shown.js(BOXES, ".mdl-figures > .mdl-card > :last-child")
    for card, end in zip(cards, ends, strict=True):
        assert card[3] - end[3] < 0.2 * (card[3] - card[1])  # of two cards side by side, the lower one


@pytest.mark.parametrize("shown", LOOKS, indirect=True, ids=lambda look: f"{look[0]}-{look[1]}")
def test_what_is_drawn_stands_out_from_what_is_behind_it(shown):
    """The contrast that WCAG 2 asks of graphics is 3."""
    part = (
        "getComputedStyle(document.querySelector('[data-control=m] marimo-slider').shadowRoot.querySelector"
    )
    track, thumb = (f"{part}('[data-testid={name}]'))" for name in ("track", "thumb"))
    behind = _colour(shown, f"{track}.backgroundColor")
    knob = [_colour(shown, f"{thumb}.{name}") for name in ("backgroundColor", "borderTopColor")]
    assert max(_contrast(one, behind) for one in knob) >= 3
    card = _colour(shown, "getComputedStyle(document.querySelector('.mdl-card')).backgroundColor")
    shown.click("Run")  # a second run makes the first one pale
    shown.wait("document.querySelector('svg path.run.pale')")
    pale = "getComputedStyle(document.querySelector('svg path.run.pale'))"
    opacity = float(shown.js(f"{pale}.opacity"))
    colour = _colour(shown, f"{pale}.color")
    mixed = [opacity * one + (1 - opacity) * other for one, other in zip(colour, card, strict=True)]
    assert _contrast(mixed, card) >= 2.4  # pale on purpose, between nothing and the 3 of what is current


def _colour(page, expression):
    """Red, green and blue between 0 and 1, however the style sheet writes the colour."""
    drawn = (
        "(colour => { const pen = document.createElement('canvas').getContext('2d'); pen.fillStyle = colour;"
        "pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3) })"
    )
    return [part / 255 for part in page.js(f"{drawn}({expression})")]


def _contrast(one, other):
    """The ratio of luminances as WCAG 2 defines it."""
    light = [
        sum(
            weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
            for weight, part in zip((0.2126, 0.7152, 0.0722), colour, strict=True)
        )
        for colour in (one, other)
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)
