"""Figure 4: denoising a small picture."""

import sys

import numpy as np
import pytest
from small_studies import (
    labelled,
)

from manifold_dl.experiments import fig4
from manifold_dl.experiments.methods import PAPER
from manifold_dl.experiments.running import redraw, run
from manifold_dl.experiments.tables import select

SMALL_PICTURE = {
    "crop": [100, 220, 64],
    "shown": [110, 230, 16],
    "atoms": 100,
    "patches": 400,
    "iterations": 3,
}


@pytest.fixture(scope="module")
def denoised(tmp_path_factory):
    pytest.importorskip("skimage")
    folder = tmp_path_factory.mktemp("fig4")
    parameters = {**fig4.fig4.parameters(quick=True), **SMALL_PICTURE, "trials": 1}
    return run(fig4.fig4, folder, parameters=parameters), parameters, folder


def test_figure4_every_method_gains_over_the_noisy_picture(denoised):
    table, _, _ = denoised
    noisy = select(table, method=fig4.NOISY)["psnr"][0]
    # 20 log₁₀(255/25); the noise of 4096 pixels has its variance to 2 %, which is 0.1 dB.
    assert noisy == pytest.approx(20.17, abs=0.3)
    for method in (fig4.START, *PAPER):
        assert select(table, method=method)["psnr"][0] > noisy + 3


def test_figure4_the_pictures_are_kept_and_drawn(denoised, drawn):
    table, parameters, folder = denoised
    with np.load(folder / "fig4.npz", allow_pickle=False) as file:
        pictures = dict(file)
    clean, _ = fig4.noisy_picture(parameters, 0, 0)
    np.testing.assert_array_equal(pictures["original"], clean[10:26, 10:26])
    figure = drawn(fig4.fig4, table, pictures)
    shown = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    assert len(shown) == 6
    np.testing.assert_array_equal(shown[-1], pictures["regularized SimCO"])
    gains = labelled(figure)[0]
    highest = max(line.get_ydata().max() for line in gains.lines)
    best = table["psnr"].max() - select(table, method=fig4.NOISY)["psnr"][0]
    assert highest == pytest.approx(best)


def test_figure4_is_redrawn_from_what_was_kept(denoised):
    _, _, folder = denoised
    before = (folder / "fig4.png").read_bytes()
    (folder / "fig4.png").unlink()
    redraw(fig4.fig4, folder)
    assert (folder / "fig4.png").read_bytes() == before


def test_figure4_redraw_without_pictures_names_the_missing_file(denoised, tmp_path):
    _, _, folder = denoised
    (tmp_path / "fig4.csv").write_bytes((folder / "fig4.csv").read_bytes())
    with pytest.raises(ValueError, match=r"there is no .*fig4\.npz"):
        redraw(fig4.fig4, tmp_path)


def test_figure4_without_scikit_image_names_the_extra_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "skimage"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "manifold-dl\[images\]"'):
        fig4.parts({"trials": 1})
