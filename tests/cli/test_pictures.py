"""Picture files are read and written without loss, or refused."""

import inspect
import os
import struct
import zlib

import numpy as np
import pytest
from command_line import SMALL
from PIL import Image
from typer.testing import CliRunner

from manifold_dl.cli import app, pictures
from manifold_dl.cli.denoise import denoise
from manifold_dl.cli.inpaint import inpaint


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
def test_written_pictures_are_read_back_without_loss(tmp_path, name, shape, dtype):
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


def test_denoising_keeps_alpha_and_colour_profile(tmp_path):
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"a\.png is no picture, but a folder, a pipe or a device"):
        pictures.read_picture(tmp_path / "a.png", 1000)


def picture_bomb(path):
    """10,000 × 10,000 grey pixels in 100 kB."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 10_000, 10_000, 8, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    rows = b"".join([packer.compress(bytes(10_001)) for _ in range(10_000)] + [packer.flush()])
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    assert path.stat().st_size < 110_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["denoise", "bomb.png", "out.png"],
        ["inpaint", "bomb.png", "out.png", "--missing-colour", "0"],
        ["inpaint", "bomb.png", "out.png", "--mask", "small.png"],
        ["inpaint", "small.png", "out.png", "--mask", "bomb.png"],
    ],
    ids=["denoise", "inpaint", "inpaint with a mask", "the mask itself"],
)
def test_a_picture_bomb_is_refused_before_anything_is_unpacked(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    picture_bomb(tmp_path / "bomb.png")
    Image.fromarray(np.eye(20, dtype=np.uint8)).save("small.png")
    decode = pictures._decode
    refuse = lambda image, path: pytest.fail("unpacked") if path.name == "bomb.png" else decode(image, path)
    monkeypatch.setattr(pictures, "_decode", refuse)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    limit = 50_000_000 if arguments[0] == "denoise" else 25_000_000
    words = " ".join(result.output.split())
    assert f"bomb.png has 10000×10000 pixels, more than the limit of {limit}; raise it with" in words


@pytest.mark.parametrize(("command", "grey", "colour"), [(denoise, 30, 80), (inpaint, 55, 130)])
def test_the_help_states_the_memory_that_the_tests_of_images_measure(command, grey, colour):
    text = inspect.signature(command).parameters["max_pixels"].annotation.__metadata__[0].help
    for words in (f"A grey pixel takes about {grey} bytes of memory", f"one in colour {colour}."):
        assert words in text
