"""Inpainting and incomplete signals on the command line."""

import json
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from command_line import SMALL, load, psnr, scene
from PIL import Image
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl.cli import app
from manifold_dl.engines import Threads


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def holes(tmp_path):
    """A picture with white pixels where it is incomplete, and the mask of them."""
    mask = np.random.default_rng(0).random(scene().shape[:2]) < 0.3
    clean = np.minimum(scene(), 254)
    Image.fromarray(np.where(mask, 255, clean).astype(np.uint8)).save(tmp_path / "holes.png")
    Image.fromarray((255 * mask).astype(np.uint8)).save(tmp_path / "mask.png")
    return tmp_path


def test_mask_and_colour_fill_in_the_same_pixels(holes):
    mask = holes / "mask.png"
    by_mask = invoke("inpaint", holes / "holes.png", holes / "a.png", "--mask", mask, *SMALL, "--json")
    by_colour = invoke("inpaint", holes / "holes.png", holes / "b.png", "--missing-colour", 255, *SMALL)
    assert by_mask.exit_code == by_colour.exit_code == 0, by_mask.output + by_colour.output
    np.testing.assert_array_equal(load(holes / "a.png"), load(holes / "b.png"))
    assert psnr(load(holes / "a.png"), scene()) > 30  # smooth waves and one edge; from 12
    assert json.loads(by_mask.output)["missing"] == pytest.approx(0.3, abs=0.02)
    assert "filled in" in by_colour.output


@pytest.mark.parametrize("text", ["255,0,255", "0,0,255,1"])
def test_colour_of_missing_pixels_needs_a_level_per_channel(tmp_path, text):
    rng = np.random.default_rng(0)
    mask = rng.random((40, 48)) < 0.2
    clean = np.stack([scene(40, 48) * c for c in (0.5, 0.7, 0.9)], axis=2).astype(np.uint8)
    Image.fromarray(np.where(mask[..., None], (255, 0, 255), clean).astype(np.uint8)).save(tmp_path / "a.png")
    Image.fromarray((255 * mask).astype(np.uint8)).save(tmp_path / "mask.png")
    done = invoke("inpaint", tmp_path / "a.png", tmp_path / "b.png", "--missing-colour", text, *SMALL)
    if text != "255,0,255":
        assert done.exit_code == 2 and "give one level, or 3 with commas" in " ".join(done.output.split())
        return
    assert done.exit_code == 0, done.output
    by_mask = invoke(
        "inpaint", tmp_path / "a.png", tmp_path / "c.png", "--mask", tmp_path / "mask.png", *SMALL
    )
    assert by_mask.exit_code == 0, by_mask.output
    filled = load(tmp_path / "b.png")
    np.testing.assert_array_equal(filled, load(tmp_path / "c.png"))
    np.testing.assert_array_equal(filled[~mask], clean[~mask])


def test_noise_of_the_option_is_the_argument_of_the_function(holes):
    noisy, rng = load(holes / "holes.png").astype(float), np.random.default_rng(1)
    noisy = np.clip(np.rint(noisy + 12 * rng.standard_normal(noisy.shape)), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(holes / "noisy.png")
    arguments = ["inpaint", holes / "noisy.png", holes / "out.png", "--mask", holes / "mask.png", *SMALL]
    done = invoke(*arguments, "--sigma", 12)
    assert done.exit_code == 0, done.output
    options = {"n_atoms": 64, "n_patches": 2000, "max_iter": 3}
    expected = mdl.images.inpaint(noisy, load(holes / "mask.png") > 0, sigma=12.0, **options)
    np.testing.assert_array_equal(load(holes / "out.png"), expected.image)
    assert (expected.image != noisy)[load(holes / "mask.png") == 0].mean() > 0.5  # observed ones are denoised


@pytest.mark.parametrize("command", ["learn", "encode"])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_refusal_of_nan_names_the_option(tmp_path, monkeypatch, command, where):
    Y = mdl.datasets.synthetic(8, 12, 90, sparsity=2, rng=0).signals.T
    np.save(tmp_path / "whole.npy", Y)
    Y[[3, 7], [2, 4]] = np.nan
    np.save(tmp_path / "data.npy", Y)
    learn = ["--atoms", 12, "--sparsity", 2, "--iterations", 2, "--out", tmp_path / "m.npz"]
    arguments = ["learn", tmp_path / "data.npy", *learn]
    if command == "encode":
        assert invoke("learn", tmp_path / "whole.npy", *learn).exit_code == 0
        arguments = ["encode", tmp_path / "m.npz", tmp_path / "data.npy", "--out", tmp_path / "c.npz"]
    if where == "file":
        monkeypatch.setattr("manifold_dl.engines.Threads", partial(Threads, memory=0))
    done = invoke(*arguments)
    words = " ".join(done.output.split())
    assert done.exit_code == 2 and "the first of 2 entries" in words
    assert "or say --missing nan if NaN marks missing entries" in words and "weights" not in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "one of --mask and --missing-colour"),
        (["--missing-colour", "256"], "nothing to fill in"),
        (["--missing-colour", "red"], "give one level"),
    ],
)
def test_missing_pixels_have_to_be_named(holes, options, words):
    done = invoke("inpaint", holes / "holes.png", holes / "out.png", *options)
    assert done.exit_code == 2 and words in " ".join(done.output.split())
    assert not (holes / "out.png").exists()


def test_nan_marks_missing_entries_where_the_option_says_so(tmp_path):
    Y = mdl.datasets.synthetic(8, 12, 90, sparsity=2, rng=0).signals
    missing = np.random.default_rng(0).random(Y.shape) < 0.2
    np.save(tmp_path / "data.npy", np.where(missing, np.nan, Y).T)
    learn = ["learn", tmp_path / "data.npy", "--atoms", 12, "--sparsity", 2, "--iterations", 2]
    assert invoke(*learn, "--out", tmp_path / "no.npz").exit_code == 2
    done = invoke(*learn, "--out", tmp_path / "model.npz", "--missing", "nan")
    assert done.exit_code == 0, done.output
    result = mdl.load(tmp_path / "model.npz")
    options = {"coder": mdl.OMP(sparsity=2), "max_iter": 2, "rng": 0}
    expected = mdl.learn_dictionary(Y, 12, weights=~missing, **options)
    np.testing.assert_array_equal(result.dictionary, expected.dictionary)
    encode = ["encode", tmp_path / "model.npz", tmp_path / "data.npy", "--out", tmp_path / "codes.npz"]
    done = invoke(*encode, "--missing", "nan")
    assert done.exit_code == 0, done.output
    codes = scipy.sparse.load_npz(tmp_path / "codes.npz").T
    np.testing.assert_array_equal(codes.toarray(), expected.codes.toarray())
