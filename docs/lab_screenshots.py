"""Draw the pictures of docs/lab.md anew: the lab in Chromium, 1280 and 800 pixels wide, light and dark.

``make lab-screenshots`` installs what it needs and runs this. Three scenes are photographed, each as a whole
page, or those that are named on the command line. The numbers of a run are always the same, but for its
seconds.
"""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from selenium.webdriver.common.keys import Keys

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "lab")]

from driven_page import Page, Server, start_browser  # noqa: E402

WIDTHS = (1280, 800)
HEIGHT = 1200  # before the page is known to be longer
FREQUENT, RARE = 136, 120  # colours of a picture; with all of them it would be twice as large
SPHERE = {"m": 3, "d": 5, "n": 100, "sparsity": 1, "line_searcher": "WolfeSearch"}
WRONG = "def R(D):\n    return np.sum(D ** 4)\n\ndef gradient(D):\n    return 3.9 * D ** 3\n"


def compare(page, folder):
    """Three optimizers on the same signals; the controls are those of the last one."""
    page.open(line_searcher="WolfeSearch", optimizer="TrustRegions")
    for optimizer in ("TrustRegions", "SteepestDescent", "ConjugateGradient"):
        page.choose("optimizer", optimizer)
        page.wait_for_code(optimizer)
        run(page)
    page.wait("document.querySelectorAll('svg path.run.pale').length === 2")
    show_step(page, 6)


def sphere(page, folder):
    """The paths of five atoms."""
    page.open(**SPHERE)
    run(page)
    page.wait("document.querySelector('mdl-sphere[data-drawn]')")
    show_step(page, 3)


def missions(page, folder):
    """Two missions are done, a gradient is wrong, a file is read, and a ridge is misspelt."""
    page.open()
    page.click("Set it up", "[data-mission=fast]")
    page.wait_for_code("max_iterations=300")
    page.choose("optimizer", "TrustRegions")
    page.wait_for_code("TrustRegions")
    run(page)
    page.wait("document.querySelector('[data-mission=fast].done')")
    table = folder / "waves.csv"
    rng, t = np.random.default_rng(0), np.linspace(0, 2 * np.pi, 20)
    phases, noise = rng.uniform(0, 2 * np.pi, (200, 2)), 0.3 * rng.standard_normal((200, 20))
    np.savetxt(table, np.sin(t + phases[:, :1]) + np.sin(3 * t + phases[:, 1:]) + noise, delimiter=",")
    page.choose("data", "your own file")
    page.inside("file", "file", "input[type=file]").send_keys(str(table))
    page.wait_for_code("waves.csv")
    page.type("mu", "0.1")
    page.wait_for_code("mu=0.1")
    page.choose("optimizer", "LBFGS")
    page.wait_for_code("LBFGS")
    page.choose("line_searcher", "WolfeSearch")
    page.wait_for_code("WolfeSearch")
    run(page)
    show_step(page, 4)
    page.write_regularizer(WRONG)
    page.wait("document.querySelector('[data-mission=gradient].done')")
    page.type("mu", "0.1, x")
    page.wait("document.querySelector('[data-control=mu] .mdl-message')")
    page.wait("!document.querySelector('.mdl-code code')")


def run(page):
    """Press Run, and wait until the run and its figures are finished."""
    runs = page.js("document.querySelectorAll('.mdl-run').length")
    page.click("Run")
    page.wait("document.querySelectorAll('.mdl-run').length === arguments[0]", runs + 1)
    page.wait_for_state("finished")
    steps = page.steps()
    page.wait("document.querySelector('.mdl-figures').dataset.step === String(arguments[0])", steps)


def show_step(page, count):
    """Move the slider to a step."""
    thumb = "document.querySelector('.mdl-step marimo-slider')?.shadowRoot?.querySelector('[role=slider]')"
    slider = page.wait(thumb)
    page.driver.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * (count - 1))
    page.wait("document.querySelector('.mdl-figures').dataset.step === String(arguments[0])", count)
    page.driver.execute_script("arguments[0].blur()", slider)


def photograph(page, name, width):
    """Write a picture of the whole page, with a palette."""
    page.js("document.querySelector('#App').scrollTo(0, 0), document.activeElement.blur()")
    resize(page, width, HEIGHT)
    bottoms = (
        "[...document.querySelectorAll('.mdl-card, .mdl-section')].map(c => c.getBoundingClientRect().bottom)"
    )
    height = round(max(page.js(bottoms))) + 16
    resize(page, width, height)
    picture = Image.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
    path = FOLDER / name
    picture.quantize(palette=palette(picture), dither=Image.Dither.NONE).save(path, optimize=True)
    print(path.relative_to(ROOT), f"{width}×{height}, {path.stat().st_size / 1024:.0f} KiB")


def palette(picture):
    """The most frequent colours, exactly, and a few for all others: thin curves must keep their hue."""
    counted = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    colours = [colour for _, colour in counted]
    others = Image.new("RGB", (len(colours), 1))
    others.putdata(colours)
    rare = others.quantize(RARE, kmeans=3, dither=Image.Dither.NONE).getpalette()[: 3 * RARE]
    made = Image.new("P", (1, 1))
    made.putpalette([part for colour in colours[:FREQUENT] for part in colour] + rare)
    return made


def resize(page, width, height):
    """Give the page a size, and wait until it is drawn in it."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.wait("innerWidth === arguments[0] && innerHeight === arguments[1]", width, height)
    page.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )


def main():
    server = Server()
    scenes = [
        scene for scene in (compare, sphere, missions) if scene.__name__ in sys.argv[1:] or not sys.argv[1:]
    ]
    try:
        for scene in scenes:
            for look in ("light", "dark"):
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    driver = start_browser(folder, WIDTHS[0], HEIGHT, look == "dark")
                    page = Page(driver, server)
                    scene(page, Path(folder))
                    for width in WIDTHS:
                        photograph(page, f"lab-{scene.__name__}-{width}-{look}.png", width)
                    driver.quit()
    finally:
        server.stop()


if __name__ == "__main__":
    main()
