"""Draw the pictures of docs/lab.md anew: the lab in Chromium, 1280 and 800 pixels wide, light and dark.

``make lab-screenshots`` installs what it needs and runs this. The numbers of a run are always the same, but
for its seconds.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "lab")]

from driven_page import Page, Server, start_browser  # noqa: E402

COMPARED = {"optimizer": "SteepestDescent", "line_searcher": "GoldenSection"}
SPHERE = {"m": 3, "d": 5, "n": 100, "sparsity": 1, "line_searcher": "WolfeSearch"}


def compare(page):
    """Three optimizers on the same signals."""
    page.open(**COMPARED)
    for optimizer in ("SteepestDescent", "ConjugateGradient", "TrustRegions"):
        page.choose("optimizer", optimizer)
        page.wait_for_code(optimizer)
        page.click("Run")
        page.wait_for_state("finished")
    page.wait("document.querySelectorAll('svg path.run.pale').length === 2")
    page.choose("optimizer", "ConjugateGradient")
    page.wait_for_code("ConjugateGradient")


def sphere(page):
    """The paths of five atoms."""
    page.open(**SPHERE)
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('svg path.run.last') && document.querySelector('svg circle.accepted')")
    page.wait("document.querySelector('mdl-sphere[data-drawn]')")


def photograph(page, name, width, height):
    """Write a picture."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.wait("innerWidth === arguments[0]", width)
    path = FOLDER / name
    page.driver.save_screenshot(str(path))
    print(path.relative_to(ROOT), f"{path.stat().st_size / 1024:.0f} KiB")


def main():
    server = Server()
    try:
        for scene, width, height, dark in (
            (compare, 1280, 1140, False),
            (compare, 800, 1600, True),
            (sphere, 1280, 1140, True),
            (sphere, 800, 1600, False),
        ):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                driver = start_browser(folder, width, height, dark)
                page = Page(driver, server)
                scene(page)
                look = "dark" if dark else "light"
                photograph(page, f"lab-{scene.__name__}-{width}-{look}.png", width, height)
                driver.quit()
    finally:
        server.stop()


if __name__ == "__main__":
    main()
