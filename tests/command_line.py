"""The command line as a process: what the tests of the commands use."""

import subprocess
import sys

import numpy as np
from PIL import Image

COMMAND = [sys.executable, "-W", "error", "-m", "manifold_dl"]


SMALL = ["--atoms", "64", "--patches", "2000", "--iterations", "3"]


WITHOUT = (
    "import sys; sys.modules['PIL'] = sys.modules['skimage'] = None; from manifold_dl.cli import main; main()"
)


FULL_DISK = (
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
    "from manifold_dl.cli import main; main()"
)


def run(*arguments, command=COMMAND, **options):
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, **options)


def scene(rows=96, columns=112):
    i, j = np.mgrid[:rows, :columns]
    return 128 + 50 * np.sin(0.3 * (i + j)) + 50 * (j > columns // 2)


def load(path):
    with Image.open(path) as image:
        return np.asarray(image)


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((a.astype(float) - b) ** 2))


def refused(done, *words, code=2):
    """One sentence on stderr with these words in it, nothing on stdout, no traceback."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("manifold-dl: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word.lower() in done.stderr.lower()  # some words are Typer's, which changes their case
    return True
