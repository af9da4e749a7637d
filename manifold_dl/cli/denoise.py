"""``manifold-dl denoise``: remove the noise from a picture file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manifold_dl.cli import choices
from manifold_dl.cli.errors import needs_images
from manifold_dl.cli.options import Atoms, Force, Iterations, Json, Quiet, Seed, Threads, input_file
from manifold_dl.cli.outputs import output_file, report, require_writable

if TYPE_CHECKING:
    from manifold_dl.cli.pictures import Photograph

Sigma = Annotated[
    float | None,
    typer.Option(
        min=0, help="Standard deviation of the noise, in the picture's units; estimated if left out."
    ),
]
PatchSize = Annotated[int, typer.Option(min=2, max=64, help="Side of the square patches, in pixels.")]
Patches = Annotated[int, typer.Option(min=1, help="Patches to learn from.")]
Stride = Annotated[
    int, typer.Option(min=1, help="Distance of the patches when rebuilding: 1 is best, 2 four times as fast.")
]
Rounds = Annotated[
    int, typer.Option(min=0, help="Rounds of the second look, where similar patches explain each other.")
]
MaxPixels = Annotated[
    int,
    typer.Option(
        min=1,
        help="Refuse larger pictures before they are unpacked. A grey pixel takes about 30 bytes of memory, "
        "one in colour 80.",
    ),
]


def denoise(
    source: Annotated[Path, input_file("IN", "A picture: PNG, JPEG or TIFF.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A .png, .jpg or .tif to write.")],
    sigma: Sigma = None,
    atoms: Atoms = 256,
    patch: PatchSize = 8,
    patches: Patches = 40_000,
    iterations: Iterations = 4,
    stride: Stride = 2,
    rounds: Rounds = 2,
    update: choices.UpdateOption = "simco",
    solver: choices.SolverOption = None,
    line_searcher: choices.LineSearcherOption = None,
    mu: choices.MuOption = None,
    manifold: choices.ManifoldOption = None,
    regularizer: choices.RegularizerOption = None,
    seed: Seed = 0,
    threads: Threads = None,
    max_pixels: MaxPixels = 50_000_000,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Remove noise from a picture, with a dictionary learned from the picture itself.

    PNG, JPEG or TIFF; grey or RGB; 8 or 16 bit. Transparency, colour profile and EXIF are kept. With less
    noise a patch needs more atoms, and the time increases.

    Without --update, --solver, --line-searcher, --mu, --manifold and --regularizer the rule is the one that
    measured best; with them it is the plain rule of that name.
    """
    photograph = _read(source, out, max_pixels, force)
    choice = choices.UpdateChoice(update, solver, line_searcher, mu, manifold, regularizer)
    rule = None if choice.is_default else choice.make(mu=0.05)
    sizes = {"patch_size": patch, "n_atoms": atoms, "n_patches": patches, "stride": stride}
    settings: dict[str, Any] = {
        "max_iter": iterations,
        "update": rule,
        "rng": seed,
        "threads": threads,
        **sizes,
    }
    from manifold_dl import images
    from manifold_dl.cli import pictures
    from manifold_dl.cli.bars import Bars

    settings["refine"] = images.SimilarPatches(rounds=rounds) if rounds else None
    with Bars(quiet or as_json) as bars:
        result = images.denoise(photograph.pixels, sigma, callbacks=[bars.bar(source.name)], **settings)
        photograph.pixels = result.image
        with output_file(out, force) as file:
            pictures.write_picture(file, photograph, out)
    facts = {"in": source, "out": out, **_facts(result), "estimated": sigma is None}
    report(facts, _sentence(facts), as_json=as_json, quiet=quiet)


def _read(source: Path, out: Path, max_pixels: int, force: bool) -> "Photograph":
    """Read the picture, and check that the output can hold it."""
    with needs_images():
        from manifold_dl.cli import pictures

        require_writable(out, force, pictures.SUFFIXES)
        photograph = pictures.read_picture(source, max_pixels)
        pictures.require_format(photograph, out)
    return photograph


def _facts(result: Any) -> dict[str, Any]:
    rows, columns = result.image.shape[:2]
    return {
        "rows": rows,
        "columns": columns,
        "sigma": result.sigma,
        "iterations": len(result.history),
        "seconds_learning": result.seconds_learning,
        "seconds_reconstruction": result.seconds_reconstruction,
    }


def _sentence(facts: dict[str, Any]) -> str:
    origin = "estimated" if facts["estimated"] else "given"
    return (
        f"{facts['out']}: {facts['columns']}×{facts['rows']} pixels, "
        f"noise σ = {facts['sigma']:.4g} ({origin}); "
        f"{facts['seconds_learning']:.1f} s learning, {facts['seconds_reconstruction']:.1f} s rebuilding."
    )
