"""``manifold-dl inpaint``: fill in the missing pixels of a picture file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manifold_dl.cli.denoise import Patches, PatchSize, Stride
from manifold_dl.cli.errors import needs_images
from manifold_dl.cli.options import Atoms, Force, Iterations, Json, Quiet, Seed, Threads, input_file
from manifold_dl.cli.outputs import output_file, report, require_writable

if TYPE_CHECKING:
    import numpy as np

    from manifold_dl.cli.pictures import Photograph

Mask = Annotated[
    Path | None,
    typer.Option(help="A picture of the same size: pixels that are not black are missing.", dir_okay=False),
]
Colour = Annotated[
    str | None,
    typer.Option(help="Pixels of this colour are missing: a level, as 255, or three, as 255,0,255."),
]
Noise = Annotated[
    float | None,
    typer.Option(min=0, help="Standard deviation of the noise: other pixels are denoised, too."),
]

MaxPixels = Annotated[
    int,
    typer.Option(
        min=1,
        help="Refuse larger pictures and masks before they are unpacked. A grey pixel takes about 55 bytes "
        "of memory, one in colour 130.",
    ),
]


def inpaint(
    source: Annotated[Path, input_file("IN", "A picture: PNG, JPEG or TIFF.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A .png, .jpg or .tif to write.")],
    mask: Mask = None,
    missing_colour: Colour = None,
    sigma: Noise = None,
    atoms: Atoms = 256,
    patch: PatchSize = 8,
    patches: Patches = 40_000,
    iterations: Iterations = 10,
    stride: Stride = 1,
    seed: Seed = 0,
    threads: Threads = None,
    max_pixels: MaxPixels = 25_000_000,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fill in missing pixels of a picture, with a dictionary learned from the others.

    Which pixels are missing is said by --mask, a picture of the same size that is not black there, or by
    --missing-colour, the colour that they have. PNG, JPEG or TIFF; grey or RGB; 8 or 16 bit.
    """
    with needs_images():
        from manifold_dl.cli import pictures

        require_writable(out, force, pictures.SUFFIXES)
        photograph = pictures.read_picture(source, max_pixels)
        pictures.require_format(photograph, out)
    missing = _missing_pixels(photograph, source, mask, missing_colour, max_pixels)
    from manifold_dl import images
    from manifold_dl.cli.bars import Bars

    settings: dict[str, Any] = {"patch_size": patch, "n_atoms": atoms, "n_patches": patches, "stride": stride}
    settings |= {"max_iter": iterations, "rng": seed, "threads": threads, "sigma": sigma}
    with Bars(quiet or as_json) as bars:
        result = images.inpaint(photograph.pixels, missing, callbacks=[bars.bar(source.name)], **settings)
        photograph.pixels = result.image
        with output_file(out, force) as file:
            pictures.write_picture(file, photograph, out)
    rows, columns = result.image.shape[:2]
    facts = {
        "in": source,
        "out": out,
        "rows": rows,
        "columns": columns,
        "missing": result.missing,
        "iterations": len(result.history),
        "seconds_learning": result.seconds_learning,
        "seconds_reconstruction": result.seconds_reconstruction,
    }
    sentence = (
        f"{out}: {columns}×{rows} pixels, {result.missing:.1%} of them filled in; "
        f"{result.seconds_learning:.1f} s learning, {result.seconds_reconstruction:.1f} s rebuilding."
    )
    report(facts, sentence, as_json=as_json, quiet=quiet)


def _missing_pixels(
    photograph: "Photograph", source: Path, mask: Path | None, colour: str | None, max_pixels: int
) -> "np.ndarray":
    """Return a rows×columns array that is True where a pixel is missing."""
    import numpy as np

    from manifold_dl.cli import pictures

    if (mask is None) == (colour is None):
        raise ValueError("which pixels are missing? Give one of --mask and --missing-colour.")
    pixels = photograph.pixels
    if mask is not None:
        marks = pictures.read_picture(mask, max_pixels).pixels
        if marks.shape[:2] != pixels.shape[:2]:
            raise ValueError(
                f"{mask} has {marks.shape[1]}×{marks.shape[0]} pixels, "
                f"{source} has {pixels.shape[1]}×{pixels.shape[0]}: both have to be of one size."
            )
        missing = marks.reshape(*marks.shape[:2], -1).any(axis=2)
    else:
        missing = (pixels.reshape(*pixels.shape[:2], -1) == _as_colour(str(colour), pixels)).all(axis=2)
    if not missing.any():
        raise ValueError(f"no pixel of {source} is missing: there is nothing to fill in.")
    return np.asarray(missing)


def _as_colour(text: str, pixels: "np.ndarray") -> "np.ndarray":
    """Return the levels of a colour such as 255 or 255,0,255."""
    import numpy as np

    try:
        levels = np.array([float(level) for level in text.split(",")])
    except ValueError:
        levels = np.zeros(0)
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    if len(levels) not in (1, channels):
        raise ValueError(f"--missing-colour {text}: give one level, or {channels} with commas between them.")
    return levels
