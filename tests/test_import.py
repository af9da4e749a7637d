"""Importing the package: without a warning, and without what is heavy and may not be needed."""

import subprocess
import sys


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_importing_is_silent_and_warns_of_nothing():
    done = run("-W", "error", "-c", "import manifold_dl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_loads_nothing_heavy():
    done = run("-c", "import sys, manifold_dl; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "manifold_dl.objective" in loaded
    assert not {"matplotlib", "dask", "sklearn", "skimage"} & loaded
