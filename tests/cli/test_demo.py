"""The demonstration on a photograph, in small."""

import json
import os

import numpy as np
from command_line import run
from PIL import Image
from typer.testing import CliRunner

from manifold_dl.cli import app


def test_demo_compares_five_methods_and_writes_one_picture(tmp_path):
    done = run("demo", "--size", 64, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    noisy, *results = facts["results"]
    assert len(results) == 5
    # 64 pixels of photograph are little to learn from; still every method removes noise.
    assert all(result["psnr"] > noisy["psnr"] + 3 for result in results)
    assert os.listdir(tmp_path) == ["manifold-dl-demo.png"]
    with Image.open(tmp_path / "manifold-dl-demo.png") as image:
        assert min(image.size) > 1000


def test_demo_overwrites_only_its_own_picture(tmp_path, monkeypatch):
    from manifold_dl.cli import figure

    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "other.png")
    assert not figure.is_ours(tmp_path / "other.png")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "other.png")])
    assert done.exit_code == 2
    assert "exists already" in done.stderr
