"""How fast the lab is in a browser: the first pictures of the page, and all figures of a step.

    python benchmarks/lab.py

Seconds of the wall clock, because a user waits for them; the machine should be idle, and the load that it had
is written down. The results go to benchmarks/results/lab.jsonl, a line for each measurement, and the table of
docs/lab.md is written from them. Needs Debian's chromium and chromium-driver (``make browser``).
"""

import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "lab")]

from comparison.results import machine  # noqa: E402
from driven_page import Page, Server, start_browser  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "lab.jsonl"
PAGE = ROOT / "docs" / "lab.md"
BEGIN, END = "<!-- speed -->", "<!-- end of speed -->"
FIRST = "the first pictures of the page, kernels on the disk"
STEP = "all figures of a step, 16×32, n = 300"
BOUNDS = {FIRST: 5.0, STEP: 0.3}  # seconds
OPENINGS, STEPS = 5, 20
PICTURES = "document.querySelector('[data-cell-name=_views] svg') && document.querySelector('svg.atoms')"
# The objective and the numbers are in one part of the page, φ and the atoms in another.
SHOWN = (
    "document.querySelector('.mdl-tiles')?.dataset.step === String(arguments[0])"
    " && document.querySelector('.mdl-figures').dataset.step === String(arguments[0])"
    " && document.querySelector('circle.accepted')"
)


def seconds(page, action, condition, *arguments):
    """From the action until the page shows it."""
    begin = time.perf_counter()
    action()
    page.wait(condition, *arguments)
    return time.perf_counter() - begin


def measured(folder):
    """The seconds of every opening, and of every step."""
    server = Server()
    driver = start_browser(folder)
    try:
        page = Page(driver, server)
        openings = [seconds(page, lambda: driver.get(server.address), PICTURES) for _ in range(OPENINGS)]
        page.open(m=16, d=32, n=300, sparsity=4)
        steps = [seconds(page, lambda: page.click("Step ▸"), SHOWN, k) for k in range(1, STEPS + 1)]
    finally:
        driver.quit()
        server.stop()
    return {FIRST: openings, STEP: steps}


def table(lines):
    """The rows of docs/lab.md."""
    rows = ["| seconds until the page shows | median | longest | bound |", "|---|---|---|---|"]
    for line in lines[1:]:
        numbers = f"{line['median']:.2f} | {line['longest']:.2f} | {line['bound']:g}"
        rows.append(f"| {line['measured']} ({len(line['seconds'])} times) | {numbers} |")
    run = lines[0]["run"]
    basis = f"{run['processor']}, {run['cores']} cores, {run['system']}, load {run['load']} before"
    return "\n".join([*rows, "", f"{run['date']} UTC, {basis} (`python benchmarks/lab.py`)."])


def results(path=RESULTS):
    """The lines of a file of results."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    lines = [{"run": {"date": date, "load": round(os.getloadavg()[0], 2), **machine()}}]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = measured(folder)
    for name, times in found.items():
        lines.append({
            "measured": name, "median": round(statistics.median(times), 3), "longest": round(max(times), 3),
            "bound": BOUNDS[name], "seconds": [round(t, 3) for t in times],
        })  # fmt: skip
    RESULTS.write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
    )
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text(f"{head}{BEGIN}\n{table(lines)}\n{END}{tail}", encoding="utf-8")
    print(table(lines))


if __name__ == "__main__":
    main()
