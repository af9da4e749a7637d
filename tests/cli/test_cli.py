"""The command line as its users meet it: as a process, with good input, bad input, full disks and Ctrl-C."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import manifold_dl
from manifold_dl.cli import app, pictures

Image = pytest.importorskip("PIL.Image")

COMMAND = [sys.executable, "-W", "error", "-m", "manifold_dl"]
COMMANDS = ["demo", "denoise", "learn", "encode", "recover", "reproduce", "warm-up", "info"]
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A noisy picture, and what a first run made of it; the kernels are compiled and cached after it."""
    folder = tmp_path_factory.mktemp("pictures")
    noisy = scene() + 25 * np.random.default_rng(0).standard_normal(scene().shape)
    Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)).save(folder / "noisy.png")
    done = run("denoise", folder / "noisy.png", folder / "clean.png", "--sigma", 25, "--json", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "clean.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def signals(tmp_path_factory):
    """Signals, and a model of them; the kernels of learning are compiled and cached after it."""
    folder = tmp_path_factory.mktemp("signals")
    _, _, Y = manifold_dl.datasets.synthetic(8, 12, 200, sparsity=2, rng=0)
    np.save(folder / "rows.npy", Y.T)
    np.save(folder / "columns.npy", Y)
    options = ["--atoms", "12", "--sparsity", "2", "--iterations", "2", "--out", str(folder / "model.npz")]
    assert CliRunner().invoke(app, ["learn", str(folder / "rows.npy"), *options]).exit_code == 0
    return folder


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


def test_the_shell_completes_commands():
    shell = {"_MANIFOLD_DL_COMPLETE": "complete_bash", "COMP_WORDS": "manifold-dl de", "COMP_CWORD": "1"}
    assert run(env=os.environ | shell).stdout.split() == ["demo", "denoise"]


def test_the_version_and_the_facts():
    assert run("--version").stdout.strip() == manifold_dl.__version__
    facts = json.loads(run("info", "--json").stdout)
    assert facts["manifold_dl"] == manifold_dl.__version__
    assert facts["threads"] >= 1
    assert facts["packages"]["numpy"] == np.__version__


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
def test_rules_and_solvers_can_be_chosen(folder, tmp_path, choice):
    out = tmp_path / "out.png"
    done = CliRunner().invoke(app, ["denoise", str(folder / "noisy.png"), str(out), *SMALL, *choice])
    assert done.exit_code == 0, done.output
    assert psnr(load(out), scene()) > 25  # from 20
    assert "estimated" in done.output


def test_an_existing_output_is_kept_unless_forced(folder, tmp_path):
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
def test_bad_calls_are_refused_with_a_sentence(folder, tmp_path, arguments, words):
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
def test_bad_pictures_are_refused_with_a_sentence(folder, tmp_path, kind):
    damage, words = BAD_PICTURES[kind]
    (tmp_path / "in.png").write_bytes(damage((folder / "noisy.png").read_bytes()))
    assert refused(run("denoise", tmp_path / "in.png", tmp_path / "out.png", *SMALL), words, "in.png")
    assert os.listdir(tmp_path) == ["in.png"]


@pytest.mark.skipif(sys.platform == "win32", reason="file limits are POSIX")
def test_a_full_disk_leaves_nothing_behind(folder, signals, tmp_path):
    script = [sys.executable, "-c", FULL_DISK]
    done = run("denoise", folder / "noisy.png", tmp_path / "out.png", *SMALL, command=script)
    assert refused(done, "could not be written", code=1)
    arguments = ["--atoms", "12", "--sparsity", "2", "--iterations", "2", "--out", tmp_path / "model.npz"]
    done = run("learn", signals / "rows.npy", *arguments, command=script)
    assert refused(done, "could not be written", code=1)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_in_the_middle_leaves_nothing_behind(folder, tmp_path):
    import pty

    ours, theirs = pty.openpty()  # a terminal, so that the progress tells when learning is under way
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
    except OSError:  # how Linux says that the other end of a terminal is closed
        pass
    assert process.communicate()[0] == b""
    assert process.returncode == 130
    assert b"stopped; nothing was written" in seen
    assert b"Traceback" not in seen
    assert os.listdir(tmp_path) == []
    os.close(ours)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_write_that_ends_halfway_leaves_the_old_file(folder, tmp_path, monkeypatch, error):
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


def test_without_the_extra_it_says_how_to_get_it(folder, tmp_path):
    script = [sys.executable, "-c", WITHOUT]
    for arguments in (["demo"], ["denoise", folder / "noisy.png", "out.png"]):
        done = run(*arguments, command=script, cwd=tmp_path)
        assert refused(done, 'pip install "manifold-dl[images]"', code=1)


def pixels(shape, dtype):
    top = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return (top * np.random.default_rng(0).random(shape)).astype(dtype)


KINDS = [
    ("a.png", (20, 30), np.uint8),
    ("a.png", (20, 30, 2), np.uint8),
    ("a.png", (20, 30, 3), np.uint8),
    ("a.png", (20, 30, 4), np.uint8),
    ("a.png", (20, 30), np.uint16),
    ("a.tif", (20, 30), np.uint8),
    ("a.tif", (20, 30, 4), np.uint8),
    ("a.tif", (20, 30), np.uint16),
    ("a.tif", (20, 30, 3), np.uint16),
    ("a.tif", (20, 30, 4), np.uint16),
    ("a.tiff", (20, 30), np.float32),
]


@pytest.mark.parametrize(("name", "shape", "dtype"), KINDS)
def test_pictures_come_back_as_they_were_written(tmp_path, name, shape, dtype):
    whole = pixels(shape, dtype)
    colours = whole if whole.ndim == 2 or shape[2] == 3 else whole[:, :, :-1]
    alpha = None if colours is whole else whole[:, :, -1]
    picture = pictures.Photograph(colours[:, :, 0] if colours.shape[2:] == (1,) else colours, alpha)
    pictures.require_format(picture, tmp_path / name)
    with open(tmp_path / name, "wb") as file:
        pictures.write_picture(file, picture, tmp_path / name)
    again = pictures.read_picture(tmp_path / name, 1000)
    assert again.pixels.dtype == dtype
    np.testing.assert_array_equal(again.pixels, picture.pixels)
    if alpha is None:
        assert again.alpha is None
    else:
        np.testing.assert_array_equal(again.alpha, alpha)


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "words"),
    [
        ("a.jpg", (20, 30, 4), np.uint8, "transparency"),
        ("a.jpg", (20, 30), np.uint16, "8 bits"),
        ("a.png", (20, 30, 3), np.uint16, "does not fit"),
        ("a.png", (20, 30), np.float32, "does not fit"),
    ],
)
def test_formats_that_cannot_hold_a_picture_are_refused(tmp_path, name, shape, dtype, words):
    whole = pixels(shape, dtype)
    alpha = whole[:, :, 3] if shape[2:] == (4,) else None
    with pytest.raises(ValueError, match=words):
        pictures.require_format(
            pictures.Photograph(whole[..., :3] if alpha is not None else whole, alpha), tmp_path / name
        )


def test_a_photograph_keeps_its_alpha_and_profile(tmp_path):
    whole = pixels((40, 48, 4), np.uint8)
    Image.fromarray(whole).save(tmp_path / "in.png", icc_profile=b"a profile", dpi=(300, 300))
    arguments = ["denoise", str(tmp_path / "in.png"), str(tmp_path / "out.png"), "--sigma", "70", *SMALL]
    assert CliRunner().invoke(app, [*arguments, "--patch", "4"]).exit_code == 0
    with Image.open(tmp_path / "out.png") as out:
        assert out.mode == "RGBA"
        assert out.info["icc_profile"] == b"a profile"
        np.testing.assert_array_equal(np.asarray(out)[:, :, 3], whole[:, :, 3])


def test_palettes_and_jpegs_are_read(folder, tmp_path):
    with Image.open(folder / "noisy.png") as image:
        image.convert("P").save(tmp_path / "palette.png")
        image.convert("RGB").save(tmp_path / "photo.jpg")
    assert pictures.read_picture(tmp_path / "palette.png", 20_000).pixels.shape == (96, 112, 3)
    assert pictures.read_picture(tmp_path / "photo.jpg", 20_000).pixels.shape == (96, 112, 3)


def test_learning_and_encoding_go_round(signals, tmp_path):
    model, codes = tmp_path / "model.npz", tmp_path / "codes.npz"
    options = ["--atoms", 12, "--sparsity", 2, "--iterations", 20, "--json"]
    done = run("learn", signals / "rows.npy", "--out", model, *options)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["signals"], facts["length"], facts["atoms"]) == (200, 8, 12)
    done = run("encode", model, signals / "rows.npy", "--out", codes, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    X, rows = scipy.sparse.load_npz(codes), np.load(signals / "rows.npy")
    assert X.shape == (200, 12)
    assert np.diff(X.tocsr().indptr).max() <= 2
    D = manifold_dl.load(model).dictionary
    loss = np.sum((rows - X @ D.T) ** 2) / 200
    # The same numbers in another order of adding.
    assert json.loads(done.stdout)["loss"] == pytest.approx(loss, rel=1e-9)
    assert loss < 0.2 * np.sum(rows**2) / 200


def test_columns_are_rows_transposed(signals, tmp_path):
    out = []
    for name, flags in [("rows", []), ("columns", ["--columns"])]:
        model, codes = str(tmp_path / f"{name}.npz"), str(tmp_path / f"{name}-codes.npz")
        data = str(signals / f"{name}.npy")
        options = ["--atoms", "12", "--sparsity", "2", "--iterations", "3", *flags]
        assert CliRunner().invoke(app, ["learn", data, "--out", model, *options]).exit_code == 0
        assert CliRunner().invoke(app, ["encode", model, data, "--out", codes, *flags]).exit_code == 0
        out.append(scipy.sparse.load_npz(codes).toarray())
    np.testing.assert_array_equal(out[0], out[1].T)


def test_bad_signals_are_refused_with_a_sentence(signals, tmp_path):
    def learn(array, *options):
        np.save(tmp_path / "data.npy", array, allow_pickle=True)
        return invoke("learn", tmp_path / "data.npy", *options)

    def invoke(command, *arguments):
        done = CliRunner().invoke(app, [command, *map(str, arguments), "--out", str(tmp_path / "o.npz")])
        assert done.exit_code == 2
        assert done.stderr.startswith("manifold-dl: ")
        return done.stderr

    few = ["--atoms", 4, "--sparsity", 2]
    assert "no .npy file of numbers" in learn(np.array([[{}]], dtype=object), *few)
    assert "two axes" in learn(np.ones(5), *few)
    assert "nan" in learn(np.array([[1.0, np.nan], [1.0, 2.0]]), *few)
    assert "sparsity" in learn(np.eye(5), "--atoms", 4, "--sparsity", 9)
    (tmp_path / "data.npy").write_bytes((signals / "rows.npy").read_bytes()[:-8])
    assert "damaged" in invoke("learn", tmp_path / "data.npy", *few)
    assert "not a file of ours" in invoke("encode", signals / "rows.npy", signals / "rows.npy")
    assert not (tmp_path / "o.npz").exists()


def test_the_demo_in_small(tmp_path):
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


def test_the_demo_overwrites_only_its_own_picture(tmp_path, monkeypatch):
    from manifold_dl.cli import figure

    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "other.png")
    assert not figure.is_ours(tmp_path / "other.png")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "other.png")])
    assert done.exit_code == 2
    assert "exists already" in done.stderr


def test_recovery_prints_its_table():
    done = CliRunner().invoke(app, ["recover", "--signals", "32"])
    assert done.exit_code == 0, done.output
    assert "presets.recover" in done.output
