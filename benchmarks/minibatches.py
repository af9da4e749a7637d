"""The choices of `MiniBatches`, one at a time: error and CPU seconds of ten iterations on 65,000 patches.

    OPENBLAS_NUM_THREADS=1 python benchmarks/minibatches.py

64×256, S = 5, from patches as the start, as in the task "patches" of `peers.py`. The choice is to be made on
coins and moon; camera and astronaut show what it is worth on others. Results are kept
in benchmarks/results/minibatches.json, and the table in docs/scaling.md is made from them.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from comparison.page import between
from comparison.results import machine
from comparison.tables import Table
from comparison.tasks.patches import SPARSITY, N, error, patches, start_from
from comparison.timing import cpu_seconds
from rich.console import Console
from rich.progress import track

from manifold_dl import OMP, MiniBatches, learn_dictionary

CHOOSING, SHOWN = ("coins", "moon"), ("camera", "astronaut")
RESULTS = Path(__file__).parent / "results" / "minibatches.json"
PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
CHOICES = {
    "default": MiniBatches(),
    "size = 1,024": MiniBatches(size=1024),
    "size = 16,384": MiniBatches(size=16_384),
    "full = 0.1": MiniBatches(full=0.1),
    "full = 0.5": MiniBatches(full=0.5),
    "steps = 1": MiniBatches(steps=1),
    "steps = 5": MiniBatches(steps=5),
    "memory = 0.05": MiniBatches(memory=0.05),
    "memory = 0.5": MiniBatches(memory=0.5),
    "no mini-batches": False,
}


def measure(choice, picture, n):
    """CPU seconds, and the error per patch with codes by OMP."""
    Y = np.asfortranarray(patches(picture, n, 7))
    settings = {"coder": OMP(sparsity=SPARSITY), "init": start_from(Y, 7), "max_iter": 10, "tol": 0.0}
    settings |= {"minibatches": CHOICES[choice], "rng": 7, "threads": 1}
    seconds, result = cpu_seconds(lambda: learn_dictionary(Y, 256, **settings))
    return {"seconds": seconds, "error": error(Y, result.dictionary, OMP(sparsity=SPARSITY))}


def table(rows):
    """The errors relative to those of the default, in per cent, and the mean of the seconds."""
    lines = []
    for choice, found in rows.items():
        each = [
            f"{100 * (found[picture]['error'] / rows['default'][picture]['error'] - 1):+.2f}"
            for picture in (*CHOOSING, *SHOWN)
        ]
        seconds = np.mean([one["seconds"] for one in found.values()])
        lines.append([choice, *each, f"{seconds:.2f}"])
    head = [f"{picture}, %" for picture in (*CHOOSING, *SHOWN)]
    return Table("", ["choice", *head, "s"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the patches, and nothing is kept")
    options = parser.parse_args()
    n = N // 10 if options.quick else N
    cases = [(choice, picture) for picture in (*CHOOSING, *SHOWN) for choice in CHOICES]
    rows = {choice: {} for choice in CHOICES}
    for choice, picture in track(cases, "Learning"):
        rows[choice][picture] = measure(choice, picture, n)
    Console().print(table(rows).rich())
    if not options.quick:
        results = {"machine": machine(), "rows": rows}
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        text = table(rows).markdown()
        PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), "minibatches", text), encoding="utf-8")


if __name__ == "__main__":
    main()
