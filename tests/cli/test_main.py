"""Help, version, completion and what `info` prints."""

import json
import os
import re
import sys

import numpy as np
import pytest
from command_line import run
from typer.testing import CliRunner

import manifold_dl
from manifold_dl.cli import app

COMMANDS = ["demo", "denoise", "inpaint", "learn", "encode", "recover", "reproduce", "warm-up", "info"]


def test_help_names_every_command():
    done = run("--help", command=[sys.executable, "-m", "manifold_dl"])
    assert done.returncode == 0
    assert run().stdout == done.stdout
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", done.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    assert name in done.output


def test_help_loads_nothing_heavy():
    script = "import sys, manifold_dl.cli; print(*sys.modules)"
    loaded = set(run(command=[sys.executable, "-c", script]).stdout.split())
    assert "manifold_dl.cli" in loaded
    assert not {"numpy", "numba", "scipy", "pymanopt", "matplotlib", "PIL", "skimage"} & loaded


def test_shell_completion_lists_matching_commands():
    shell = {"_MANIFOLD_DL_COMPLETE": "complete_bash", "COMP_WORDS": "manifold-dl de", "COMP_CWORD": "1"}
    assert run(env=os.environ | shell).stdout.split() == ["demo", "denoise"]


def test_version_and_info_agree_with_the_package():
    assert run("--version").stdout.strip() == manifold_dl.__version__
    facts = json.loads(run("info", "--json").stdout)
    assert facts["manifold_dl"] == manifold_dl.__version__
    assert facts["threads"] >= 1
    assert facts["packages"]["numpy"] == np.__version__
