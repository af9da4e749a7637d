"""Denoising as a process: good input, bad input, full disks and Ctrl-C."""

import json
import os
import signal
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from command_line import COMMAND, FULL_DISK, SMALL, WITHOUT, load, psnr, refused, run, scene
from PIL import Image
from typer.testing import CliRunner

from manifold_dl.cli import app, pictures


def test_denoising_removes_noise(folder):
    before, after = (load(folder / name) for name in ("noisy.png", "clean.png"))
    assert after.dtype == np.uint8
    # Smooth waves and one edge: far more than 5 dB are to be had, whatever the settings.
    assert psnr(after, scene()) > psnr(before, scene()) + 5
    facts = json.loads((folder / "clean.json").read_text())
    assert (facts["rows"], facts["columns"], facts["sigma"]) == (96, 112, 25.0)
    assert not facts["estimated"]
    assert facts["iterations"] == 3


@pytest.mark.parametrize(
    "choice",
    [
        ["--update", "ksvd"],
        ["--update", "mod"],
        ["--solver", "golden", "--mu", "0"],
        ["--solver", "lbfgs"],
        ["--solver", "trust-region"],
    ],
)
def test_update_rule_and_solver_are_options(folder, tmp_path, choice):
    out = tmp_path / "out.png"
    done = CliRunner().invoke(app, ["denoise", str(folder / "noisy.png"), str(out), *SMALL, *choice])
    assert done.exit_code == 0, done.output
    assert psnr(load(out), scene()) > 25  # from 20
    assert "estimated" in done.output


def test_existing_output_is_overwritten_only_with_force(folder, tmp_path):
    out = tmp_path / "out.png"
    out.write_bytes(b"precious")
    arguments = ["denoise", folder / "noisy.png", out, *SMALL]
    assert refused(run(*arguments), "exists already", "--force")
    assert out.read_bytes() == b"precious"
    done = run(*arguments, "--force", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with Image.open(out) as image:
        assert image.size == (112, 96)
    assert os.listdir(tmp_path) == ["out.png"]


BAD_CALLS = [
    (["nowhere.png", "out.png"], "nowhere.png"),
    (["{noisy}", "out.png", "--sigma", "-3"], "--sigma"),
    (["{noisy}", "out.png", "--sigma", "nan"], "sigma"),
    (["{noisy}", "out.png", "--atoms", "0"], "--atoms"),
    (["{noisy}", "out.png", "--atoms", "many"], "--atoms"),
    (["{noisy}", "out.png", "--update", "magic"], "magic"),
    (["{noisy}", "out.png", "--update", "mod", "--solver", "cg"], "belongs to --update simco"),
    (["{noisy}", "out.png", "--max-pixels", "1000"], "112×96"),
    (["{noisy}", "out.gif"], ".png"),
    (["{noisy}", "missing/out.png"], "no folder"),
    (["{noisy}"], "out"),
    (["{noisy}", "out.png", "--frobnicate"], "--frobnicate"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_CALLS)
def test_bad_arguments_give_one_sentence_and_no_file(folder, tmp_path, arguments, words):
    arguments = [a.replace("{noisy}", str(folder / "noisy.png")) for a in arguments]
    assert refused(run("denoise", *arguments, cwd=tmp_path), words)
    assert os.listdir(tmp_path) == []


def png_claiming(columns, rows, bits=8, colour=0):
    """The beginning of a PNG, sound as far as it goes."""
    header = b"IHDR" + struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    data = b"IDAT" + zlib.compress(b"\0")
    return start + struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))


BAD_PICTURES = {
    "empty": (lambda whole: b"", "no PNG"),
    "text": (lambda whole: b"not a picture at all" * 9, "no PNG"),
    "truncated": (lambda whole: whole[: len(whole) // 2], "damaged"),
    "header only": (lambda whole: whole[:33], "damaged"),
    "a bomb": (lambda whole: png_claiming(60_000, 60_000), "60000×60000"),
    "16 bit colour": (lambda whole: png_claiming(20, 20, bits=16, colour=2), "16 bits per colour"),
}


@pytest.mark.parametrize("kind", BAD_PICTURES)
def test_damaged_pictures_give_one_sentence_and_no_file(folder, tmp_path, kind):
    damage, words = BAD_PICTURES[kind]
    (tmp_path / "in.png").write_bytes(damage((folder / "noisy.png").read_bytes()))
    assert refused(run("denoise", tmp_path / "in.png", tmp_path / "out.png", *SMALL), words, "in.png")
    assert os.listdir(tmp_path) == ["in.png"]


@pytest.mark.skipif(sys.platform == "win32", reason="file limits are POSIX")
def test_full_disk_leaves_no_partial_file(folder, signals, tmp_path):
    script = [sys.executable, "-c", FULL_DISK]
    done = run("denoise", folder / "noisy.png", tmp_path / "out.png", *SMALL, command=script)
    assert refused(done, "could not be written", code=1)
    arguments = ["--atoms", "12", "--sparsity", "2", "--iterations", "2", "--out", tmp_path / "model.npz"]
    done = run("learn", signals / "rows.npy", *arguments, command=script)
    assert refused(done, "could not be written", code=1)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_while_learning_leaves_no_partial_file(folder, tmp_path):
    import pty

    ours, theirs = pty.openpty()  # a terminal, so that progress is printed while learning
    arguments = ["denoise", folder / "noisy.png", tmp_path / "out.png", "--iterations", 1_000_000]
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"learning, loss" not in seen:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # on Linux: the other end of the terminal is closed
        pass
    assert process.communicate()[0] == b""
    assert process.returncode == 130
    assert b"stopped; nothing was written" in seen
    assert b"Traceback" not in seen
    assert os.listdir(tmp_path) == []
    os.close(ours)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_interrupted_write_keeps_the_old_file(folder, tmp_path, monkeypatch, error):
    def half(file, *_):
        file.write(b"half")
        raise error

    monkeypatch.setattr(pictures, "write_picture", half)
    out = tmp_path / "out.png"
    out.write_bytes(b"precious")
    done = CliRunner().invoke(app, ["denoise", str(folder / "noisy.png"), str(out), "--force", *SMALL])
    assert done.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 1)
    assert out.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["out.png"]


def test_missing_scikit_image_names_the_extra_to_install(folder, tmp_path):
    script = [sys.executable, "-c", WITHOUT]
    for arguments in (["demo"], ["denoise", folder / "noisy.png", "out.png"]):
        done = run(*arguments, command=script, cwd=tmp_path)
        assert refused(done, 'pip install "manifold-dl[images]"', code=1)
