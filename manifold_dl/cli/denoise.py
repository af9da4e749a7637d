"""``manifold-dl denoise``: remove the noise from a picture of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from manifold_dl.cli.choices import (
    LineSearcherOption,
    ManifoldOption,
    MuOption,
    RegularizerOption,
    SolverOption,
    UpdateChoice,
    UpdateOption,
)
from manifold_dl.cli.shared import (
    Force,
    Json,
    Quiet,
    Seed,
    Threads,
    input_file,
    needs_images,
    print_json,
    require_free,
    whole_file,
)


def denoise(
    source: Annotated[Path, input_file("IN", "A picture: PNG, JPEG or TIFF.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A .png, .jpg or .tif to write.")],
    sigma: Annotated[
        float | None,
        typer.Option(
            min=0, help="Standard deviation of the noise, in the picture's units; estimated if left out."
        ),
    ] = None,
    atoms: Annotated[int, typer.Option(min=1, help="Atoms to learn.")] = 256,
    patch: Annotated[int, typer.Option(min=2, max=64, help="Side of the square patches, in pixels.")] = 8,
    patches: Annotated[int, typer.Option(min=1, help="Patches to learn from.")] = 40_000,
    iterations: Annotated[int, typer.Option(min=1, help="Rounds of coding and updating.")] = 10,
    stride: Annotated[
        int,
        typer.Option(min=1, help="Distance of the patches when rebuilding: 1 is best, 2 four times as fast."),
    ] = 1,
    update: UpdateOption = "simco",
    solver: SolverOption = None,
    line_searcher: LineSearcherOption = None,
    mu: MuOption = None,
    manifold: ManifoldOption = None,
    regularizer: RegularizerOption = None,
    seed: Seed = 0,
    threads: Threads = None,
    max_pixels: Annotated[int, typer.Option(min=1, help="Refuse larger pictures unread.")] = 100_000_000,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
):
    """Remove noise from a picture, with a dictionary learned from the picture itself.

    PNG, JPEG or TIFF; grey or RGB; 8 or 16 bit. Transparency, colour profile and EXIF stay as they are.
    The less noise, the more atoms a patch takes and the longer it lasts.

    Without --update, --solver, --line-searcher, --mu, --manifold and --regularizer the rule is the one that
    measured best; with them it is the plain rule of that name.
    """
    with needs_images():
        from manifold_dl.cli import pictures

        require_free(out, force, pictures.SUFFIXES)
        photograph = pictures.read_picture(source, max_pixels)
        pictures.require_room(photograph, out)
    from manifold_dl import images
    from manifold_dl.cli.bars import Bars

    choice = UpdateChoice(update, solver, line_searcher, mu, manifold, regularizer)
    rule = None if choice.is_default else choice.make(mu=0.05)
    with Bars(quiet or as_json) as bars:
        result = images.denoise(
            photograph.pixels,
            sigma,
            patch_size=patch,
            n_atoms=atoms,
            n_patches=patches,
            max_iter=iterations,
            stride=stride,
            update=rule,
            rng=seed,
            threads=threads,
            callbacks=[bars.bar(source.name)],
        )
        photograph.pixels = result.image
        with whole_file(out, force) as file:
            pictures.write_picture(file, photograph, out)
    rows, columns = result.image.shape[:2]
    if as_json:
        print_json(
            {
                "in": source,
                "out": out,
                "rows": rows,
                "columns": columns,
                "sigma": result.sigma,
                "estimated": sigma is None,
                "iterations": len(result.history),
                "seconds_learning": result.seconds_learning,
                "seconds_reconstruction": result.seconds_reconstruction,
            }
        )
    elif not quiet:
        known = "estimated" if sigma is None else "given"
        print(
            f"{out}: {columns}×{rows} pixels, noise σ = {result.sigma:.4g} ({known}); "
            f"{result.seconds_learning:.1f} s learning, {result.seconds_reconstruction:.1f} s rebuilding."
        )
