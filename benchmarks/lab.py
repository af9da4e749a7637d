"""How fast the lab is in a browser: the first picture of the page, and the redrawing of a step.

Seconds of the wall clock, best and median, because a user waits for them; the machine should be idle. Needs
Debian's chromium and chromium-driver (``make browser``).
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "lab")]

from driven_page import Page, Server, start_browser  # noqa: E402


def seconds(page, action, condition, *arguments):
    """From the action until the page shows it."""
    begin = time.perf_counter()
    action()
    page.wait(condition, *arguments)
    return time.perf_counter() - begin


def main():
    server = Server()
    driver = start_browser(tempfile.mkdtemp())
    try:
        page = Page(driver, server)
        first = [
            seconds(page, lambda: driver.get(server.address), "document.querySelector('svg.mdl-figure')")
            for _ in range(5)
        ]
        page.open(m=16, d=32, n=300, sparsity=4)
        shown = "document.querySelector('.mdl-tiles')?.dataset.step === String(arguments[0])"
        steps = [seconds(page, lambda: page.click("Step ▸"), shown, k) for k in range(1, 21)]
        for name, times in {"first picture": first, "a step, 16×32, n = 300": steps}.items():
            median = statistics.median(times)
            print(f"{name}: best {min(times):.2f} s, median {median:.2f} s, most {max(times):.2f} s")
    finally:
        driver.quit()
        server.stop()


if __name__ == "__main__":
    main()
