"""``manifold-dl demo``: denoise a picture with five ways of learning a dictionary, and compare them."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manifold_dl.cli.errors import needs_images
from manifold_dl.cli.options import Force, Json, Quiet, Seed
from manifold_dl.cli.outputs import output_file, report, require_writable

if TYPE_CHECKING:
    import numpy as np

    from manifold_dl.cli.bars import Bars

SIGMA = 25.0
HEAD = 90, 200  # row and column of the photographer's face
# The budget of the paper's Section VI-C, and its reconstruction.
PAPER = {"n_patches": 1000, "max_iter": 10, "stride": 1, "refine": None}


def demo(
    out: Annotated[Path, typer.Option(help="The .png to write.")] = Path("manifold-dl-demo.png"),
    seed: Seed = 0,
    size: Annotated[int, typer.Option(min=64, max=512, hidden=True)] = 512,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Denoise a bundled picture in five ways, compare them in a table and in a picture."""
    with needs_images():
        from skimage import data

        from manifold_dl.cli.figure import draw, is_ours
    require_writable(out, force or is_ours(out), (".png",))
    import numpy as np

    from manifold_dl import images
    from manifold_dl.cli.bars import Bars

    begin = time.perf_counter()
    top, left = (min(start, 512 - size) for start in HEAD)
    clean = data.camera()[top : top + size, left : left + size].astype(float)
    noisy = clean + SIGMA * np.random.default_rng(seed).standard_normal(clean.shape)
    rows: list[dict[str, Any]] = [{"method": "the noisy picture", **_quality(clean, noisy)}]
    results = {}
    with Bars(quiet or as_json) as bars:
        methods = _methods()
        width = max(map(len, methods))
        _compile(bars, width, methods, noisy[HEAD[0] - top :, HEAD[1] - left :][:24, :24], seed)
        for name, settings in methods.items():
            bar = bars.bar(name.ljust(width))
            result = images.denoise(noisy, SIGMA, rng=seed, callbacks=[bar], **settings)
            results[name] = result
            rows.append(
                {
                    "method": name,
                    **_quality(clean, result.image),
                    "seconds_learning": result.seconds_learning,
                    "seconds_reconstruction": result.seconds_reconstruction,
                }
            )
            bar.finish(f"{rows[-1]['psnr']:.2f} dB")
        with output_file(out, force=True) as file:
            draw(file, clean, noisy, results, rows)
    seconds = time.perf_counter() - begin
    facts = {"out": out.absolute(), "sigma": SIGMA, "results": rows, "seconds": seconds}
    report(facts, lambda: _show(rows, out, seconds), as_json=as_json, quiet=quiet)


def _methods() -> dict[str, dict[str, Any]]:
    """Return the keyword arguments of `images.denoise`, by the name of the method."""
    from manifold_dl.experiments.methods import paper_methods

    rules = paper_methods(mu=0.05, threads=None)
    return {name: {**PAPER, "update": rule} for name, rule in rules.items()} | {"ours, 40,000 patches": {}}


def _quality(clean: "np.ndarray", picture: "np.ndarray") -> dict[str, float]:
    from skimage import metrics

    ssim = metrics.structural_similarity(  # with the parameters of Wang et al. (2004)
        clean, picture, data_range=255, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
    )
    return {
        "psnr": float(metrics.peak_signal_noise_ratio(clean, picture, data_range=255)),
        "ssim": float(ssim),
    }


def _compile(
    bars: "Bars", width: int, methods: dict[str, dict[str, Any]], piece: "np.ndarray", seed: int
) -> None:
    """Run all methods on a small piece, so that compilation, in the first run, is not timed."""
    from manifold_dl import images

    bar = bars.bar("getting ready".ljust(width))
    for i, settings in enumerate(methods.values()):
        bar.count(i, len(methods), "compiling, in the first run only")
        images.denoise(piece, SIGMA, **{**settings, "max_iter": 2}, rng=seed)
    bar.hide()


def _show(rows: list[dict[str, Any]], out: Path, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"\nA photograph with Gaussian noise of σ = {SIGMA:.0f} is denoised with 256 atoms of 8×8\n"
        "pixels, learned from the noisy picture itself: from 1,000 of its patches, as in\n"
        "the paper, or from 40,000.\n",
        highlight=False,
    )
    table = Table("method", "PSNR, dB", "SSIM", "learning, s", "rebuilding, s")
    for column in table.columns[1:]:
        column.justify = "right"
    best = max(row["psnr"] for row in rows)
    for row in rows:
        times = [
            f"{row[key]:.1f}" if key in row else "" for key in ("seconds_learning", "seconds_reconstruction")
        ]
        style = "bold green" if row["psnr"] == best else "dim" if not times[0] else None
        table.add_row(row["method"], f"{row['psnr']:.2f}", f"{row['ssim']:.3f}", *times, style=style)
    console.print(table)
    console.print(f"\nThe pictures and the atoms, side by side ({seconds:.0f} s in all):", highlight=False)
    console.print(str(out.absolute()), style="bold", soft_wrap=True, highlight=False)
