"""The user's own file in a real browser: arrays, tables and pictures."""

import numpy as np
import pytest
from chromium import HAS_DRIVER

pytestmark = pytest.mark.skipif(not HAS_DRIVER, reason="needs Debian's chromium and chromium-driver")

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2}
MESSAGE = "document.querySelector('[data-control=file] .mdl-message')"


def upload(page, path):
    """Choose a file, and run what it holds."""
    page.choose("data", "your own file")
    page.wait(f"{MESSAGE}?.textContent.startsWith('Choose a file')")
    page.inside("file", "file", "input[type=file]").send_keys(str(path))
    page.wait(f"!{MESSAGE}")
    page.click("Run")
    page.wait_for_state("finished")
    page.wait("document.querySelector('svg path.run.last')?.getAttribute('d').includes('L')")


def test_a_file_of_ones_own_is_read_and_a_damaged_one_explained(page, tmp_path):
    good, bad = tmp_path / "signals.npy", tmp_path / "damaged.npy"
    np.save(good, np.random.default_rng(0).standard_normal((50, 6)))
    bad.write_bytes(b"no array")
    page.open(**SMALL)
    page.choose("data", "your own file")
    message = "document.querySelector('[data-control=file] .mdl-message')"
    page.wait(f"{message}?.textContent.startsWith('Choose a file')")
    page.inside("file", "file", "input[type=file]").send_keys(str(bad))
    page.wait(f"{message}?.textContent.startsWith('damaged.npy holds no matrix of finite numbers')")
    page.inside("file", "file", "input[type=file]").send_keys(str(good))
    page.wait("!document.querySelector('[data-control=file] .mdl-message')")
    page.click("Run")
    page.wait_for_state("finished")
    assert "signals.npy" in page.text(".mdl-code code")


def test_a_table_is_read_and_its_signals_are_run(page, tmp_path):
    path = tmp_path / "signals.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((50, 6)), delimiter=",")
    page.open(**SMALL)
    upload(page, path)
    code = page.text(".mdl-code code")
    assert "np.loadtxt('signals.csv'" in code and "mdl.manifolds.Spheres(len(Y), 12)" in code
    assert not page.js("document.querySelector('[data-control=patch]')")  # it is no picture
    # 12 atoms in the 6 dimensions of its rows; the controls of other signals have m = 8
    assert "12 atoms cannot be orthonormal in m=6" in page.text("[data-control=manifold] .mdl-reasons")


def test_a_picture_is_cut_into_patches_whose_atoms_are_drawn_as_pictures(page, tmp_path):
    from PIL import Image

    path = tmp_path / "waves.png"
    x, y = np.meshgrid(np.arange(40), np.arange(30))
    Image.fromarray((127 + 120 * np.sin(x / 3 + y**2 / 90)).astype(np.uint8)).save(path)
    page.open(**SMALL)
    upload(page, path)
    page.wait("document.querySelector('svg.atoms image')?.getAttribute('href').startsWith('data:image/png')")
    assert "Image.open('waves.png')" in page.text(".mdl-code code")
    assert page.js("document.querySelector('[data-control=patch]') !== null")
