"""Figure 4: denoising a picture with a dictionary learned from the noisy picture itself, Section VI-C.

1,000 blocks of 8×8 pixels, 256 atoms, ten iterations of OMP and one update; μ = 0.05 for regularized SimCO.
The paper shows one picture. Here the noise is drawn ten times, because the methods differ by less than
0.2 dB, and the initial cosine dictionary, without learning, is compared as a fifth method.
``manifold-dl denoise`` and ``demo`` run the same code, `manifold_dl.images.denoise`.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl.coders import OMP
from manifold_dl.experiments.methods import paper_methods
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, select, standard_error
from manifold_dl.images import denoise, usual_gain
from manifold_dl.plotting import method_style
from manifold_dl.plotting.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SETTING = {
    "picture": "camera",
    "crop": [0, 0, 512],  # first row, first column, side
    "shown": [80, 190, 128],  # the photographer's head and his camera
    "sigma": 25,
    "atoms": 256,
    "patches": 1000,
    "iterations": 10,
    "mu": 0.05,
    "trials": 10,
}
QUICK = {"crop": [80, 190, 128], "trials": 2}

NOISY, START = "noisy", "cosines, not learned"


def parts(parameters: Parameters) -> list[Part]:
    """Return the draws of the noise. The picture needs scikit-image."""
    scikit_image()
    return [{"trial": trial} for trial in range(parameters["trials"])]


def measure(parameters: Parameters, seed: int, trial: int) -> tuple[list[Row], dict[str, np.ndarray]]:
    """Return the PSNR of the noisy and of the denoised pictures; for the first draw, also a piece of each."""
    clean, noisy = noisy_picture(parameters, seed, trial)
    results = {NOISY: noisy}
    for method, settings in learning(parameters).items():
        rng = np.random.default_rng([trial, seed])
        results[method] = denoise(noisy, parameters["sigma"], rng=rng, threads=1, **settings).image
    rows = [
        {"method": method, "picture": parameters["picture"], "trial": trial, "psnr": psnr(clean, image)}
        for method, image in results.items()
    ]
    pictures = {"original": clean, **results} if trial == 0 else {}
    return rows, {name: _piece(picture, parameters) for name, picture in pictures.items()}


def noisy_picture(parameters: Parameters, seed: int, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the clean picture, with 255 for white, and the noisy one."""
    top, left, size = parameters["crop"]
    clean = getattr(scikit_image().data, parameters["picture"])()[top : top + size, left : left + size]
    noise = np.random.default_rng([trial, parameters["sigma"], seed]).standard_normal(clean.shape)
    return clean.astype(float), clean + parameters["sigma"] * noise


def learning(parameters: Parameters) -> dict[str, dict[str, Any]]:
    """Return the keyword arguments of `images.denoise`, by method."""
    length = 64
    coder = OMP(sparsity=length // 2, tol=(usual_gain(length) * parameters["sigma"]) ** 2 * length)
    common = {"coder": coder, "n_atoms": parameters["atoms"], "n_patches": parameters["patches"]}
    common |= {"stride": 1, "refine": None}  # the reconstruction of the paper
    rules = {START: _no_update, **paper_methods(parameters["mu"])}
    return {
        name: {**common, "update": rule, "max_iter": 1 if rule is _no_update else parameters["iterations"]}
        for name, rule in rules.items()
    }


def psnr(clean: np.ndarray, picture: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in dB, white being 255."""
    return float(10 * np.log10(255**2 / np.mean((picture - clean) ** 2)))


def _no_update(signals: np.ndarray, dictionary: np.ndarray, codes: Any, **_: Any) -> tuple[np.ndarray, Any]:
    """Keep the initial cosine dictionary."""
    return dictionary, codes


def _piece(picture: np.ndarray, parameters: Parameters) -> np.ndarray:
    row, column, size = np.array(parameters["shown"]) - [*parameters["crop"][:2], 0]
    return np.clip(np.rint(picture[row : row + size, column : column + size]), 0, 255).astype(np.uint8)


def scikit_image() -> ModuleType:
    """Return the package with the pictures, or raise ModuleNotFoundError that says how to install it."""
    try:
        import skimage.data
    except ModuleNotFoundError as error:
        sentence = 'pictures need scikit-image: pip install "manifold-dl[images]".'
        raise ModuleNotFoundError(sentence, name=error.name) from None
    return skimage


def draw(table: Table, pictures: dict[str, np.ndarray]) -> "Figure":
    """Draw the gain of each method in every draw, and the pictures of the first draw."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10.8, 5.0))
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.25], squeeze=False)[0]
    _draw_gains(left.subplots(), table)
    for ax, name in zip(right.subplots(2, 3).flat, [n for n in pictures if n != START], strict=True):
        ax.imshow(pictures[name], cmap="gray", vmin=0, vmax=255)
        found = select(table, method=name, trial=0)["psnr"]  # empty for the original
        ax.set_title("\n".join([name, *(f"{value:.2f} dB" for value in found)]), fontsize=9.5)
        ax.set_axis_off()
    return figure


def _gains(table: Table) -> dict[str, np.ndarray]:
    """Return the gain over the noisy picture in dB, in every draw, by method."""
    noisy = select(table, method=NOISY)["psnr"]
    methods = [method for method in in_order(table["method"]) if method != NOISY]
    return {method: select(table, method=method)["psnr"] - noisy for method in methods}


def _draw_gains(ax: "Axes", table: Table) -> None:
    gains_by_method = _gains(table)
    methods, trials = list(gains_by_method), np.arange(len(select(table, method=NOISY)["trial"]))
    spread = 0.36 * (trials / max(1, len(trials) - 1) - 0.5)  # in the order of the draws, from left to right
    # Thin lines join the results for the same noise.
    places = np.arange(len(methods))[:, None] + spread
    ax.plot(places, list(gains_by_method.values()), color=GREY, linewidth=0.6, alpha=0.5, zorder=1)
    for i, (method, gains) in enumerate(gains_by_method.items()):
        look = {"color": GREY, "marker": "o"} if method == START else method_style(method)
        dots = look | {"linestyle": "none", "markersize": 5, "alpha": 0.8, "markeredgewidth": 0}
        ax.plot(i + spread, gains, **dots)
        ax.hlines(gains.mean(), i - 0.24, i + 0.24, color="black", linewidth=1.4)
        ax.annotate(f"{gains.mean():.2f}", (i + 0.26, gains.mean()), fontsize="small", va="center")
    ax.set_xticks(range(len(methods)), labels=[method.replace(" ", "\n") for method in methods])
    ax.set_xlim(-0.5, len(methods) - 0.2)
    ax.grid(False, axis="x")
    ax.set(
        ylabel="gain over the noisy picture, dB", title=f"{len(trials)} draws of the noise, and their mean"
    )


def claims(table: Table) -> list[Claim]:
    """Check Section VI-C: every method gains, regularized SimCO most; compare with the start."""
    gains = _gains(table)
    text = ", ".join(f"{method} {gain.mean():.2f} ± {np.std(gain):.2f}" for method, gain in gains.items())
    ours, start = gains["regularized SimCO"], gains[START]
    others = {name: gain for name, gain in gains.items() if name not in ("regularized SimCO", START)}
    second = max(others, key=lambda name: others[name].mean())
    lead = ours - others[second]
    best = int(np.sum(ours > np.max(list(others.values()), axis=0)))
    worse = [name for name in (*others, "regularized SimCO") if gains[name].mean() < start.mean()]
    return [
        Claim(
            "all methods improve the picture",
            f"gain in dB, mean and standard deviation of {len(ours)} draws: {text}",
            all(bool((gain > 0).all()) for gain in gains.values()),
        ),
        Claim(
            "the largest gain is that of regularized SimCO",
            f"{lead.mean():+.3f} ± {standard_error(lead):.3f} dB more than {second}; best in {best} of "
            f"{len(ours)} draws. A difference of that size is not visible",
            bool(lead.mean() > 2 * standard_error(lead)),
        ),
        Claim(
            "learning gains more than the cosines it starts from",
            f"{', '.join(worse) or 'none'} below the {start.mean():.2f} dB of the cosines; regularized SimCO "
            f"{np.mean(ours - start):+.3f} dB",
            not worse,
        ),
    ]


fig4 = Study("fig4", "Image denoising", SETTING, QUICK, parts, measure, draw, claims, pictures=True)
