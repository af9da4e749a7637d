"""Picture files for `denoise`: PNG, JPEG and TIFF, grey or RGB, with or without alpha, 8 or 16 bit or float.

The header is read first: a picture that is too large is refused before any pixel is decoded. Alpha, colour
profile and EXIF, which denoising does not change, are written as they were read.
"""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}


@dataclass
class Photograph:
    """The pixels of a picture, and what else the file held.

    Parameters
    ----------
    pixels : array (rows×columns or rows×columns×3)
        uint8, uint16 or float32.
    alpha : array (rows×columns), optional
        The transparency.
    extras : dict
        Colour profile, EXIF and resolution, as keyword arguments of Pillow's ``save``.
    """

    pixels: np.ndarray
    alpha: np.ndarray | None = None
    extras: dict[str, Any] = field(default_factory=dict)


class Refusal(ValueError):
    """A valid picture of a kind that is not supported."""


def read_picture(path: Path, max_pixels: int) -> Photograph:
    """Read a picture.

    Parameters
    ----------
    path : Path
        A PNG, JPEG or TIFF file.
    max_pixels : int
        A picture with more pixels is refused before it is decoded.

    Returns
    -------
    Photograph

    Raises
    ------
    ValueError
        If the file is damaged, too large or of another kind.
    """
    from PIL import Image

    if path.exists() and not path.is_file():  # opening a named pipe would wait for a writer
        raise ValueError(f"{path} is no picture, but a folder, a pipe or a device.")
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # replaced by the limit below
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about harmless damage; other damage raises an error
            with Image.open(path, formats=["PNG", "JPEG", "TIFF"]) as image:
                columns, rows = image.size
                if rows * columns > max_pixels:
                    raise Refusal(
                        f"{path} has {columns}×{rows} pixels, more than the limit of {max_pixels}; "
                        "raise it with --max-pixels."
                    )
                return _decode(image, path)
    except (Refusal, FileNotFoundError, PermissionError, MemoryError):
        raise
    except Image.UnidentifiedImageError:
        raise ValueError(f"{path} is no PNG, JPEG or TIFF picture, or a damaged one.") from None
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise ValueError(f"{path} is damaged or of an unknown kind: {error}.") from None
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def require_format(photograph: Photograph, path: Path) -> None:
    """Refuse a file format that cannot hold a picture, before anything is computed.

    Parameters
    ----------
    photograph : Photograph
        The picture.
    path : Path
        The file to write; its suffix names the format.

    Raises
    ------
    ValueError
        If pixels or transparency do not fit the format.
    """
    pixels, kind = photograph.pixels, FORMATS[path.suffix.lower()]
    if kind == "JPEG" and photograph.alpha is not None:
        raise ValueError(f"{path}: JPEG has no transparency; write a .png or .tif.")
    if kind == "JPEG" and pixels.dtype != np.uint8:
        raise ValueError(f"{path}: JPEG holds 8 bits, the picture has {pixels.dtype}; write a .tif.")
    if kind == "PNG" and (
        pixels.dtype.kind == "f" or (pixels.dtype == np.uint16 and not _plain_grey(photograph))
    ):
        raise ValueError(f"{path}: this picture of {pixels.dtype} does not fit a PNG; write a .tif.")


def write_picture(file: IO[bytes], photograph: Photograph, path: Path) -> None:
    """Write a picture to an open file.

    Parameters
    ----------
    file : binary file
        Open for writing.
    photograph : Photograph
        The picture.
    path : Path
        Its suffix names the format.
    """
    from PIL import Image

    pixels, kind = photograph.pixels, FORMATS[path.suffix.lower()]
    if photograph.alpha is not None:
        pixels = np.dstack([pixels, photograph.alpha])
    if kind == "TIFF" and pixels.dtype != np.uint8:
        import tifffile

        samples: dict[str, Any] = (
            {} if pixels.ndim == 2 else {"photometric": "rgb" if pixels.shape[2] > 2 else "minisblack"}
        )
        if photograph.alpha is not None:
            samples |= {"planarconfig": "contig", "extrasamples": ["unassalpha"]}
        profile = photograph.extras.get("icc_profile")
        tifffile.imwrite(file, pixels, metadata=None, iccprofile=profile, **samples)
        return
    options: dict[str, dict[str, Any]] = {
        "PNG": {},
        "JPEG": {"quality": 95, "subsampling": 0},
        "TIFF": {"compression": "tiff_adobe_deflate"},
    }
    Image.fromarray(pixels).save(file, format=kind, **options[kind], **photograph.extras)


def _decode(image: Any, path: Path) -> Photograph:
    extras = {name: image.info[name] for name in ("icc_profile", "exif", "dpi") if image.info.get(name)}
    if image.format == "TIFF" and image.n_frames > 1:
        raise Refusal(f"{path} holds {image.n_frames} pictures; a file with a single one is needed.")
    if image.format == "TIFF":
        bits, samples = image.tag_v2.get(258, (1,)), image.tag_v2.get(277, 1)
        if max(bits) == 16 and samples > 1:  # Pillow would drop half the bits
            return _decode_tiff(path, image.size, extras)
    if image.format == "PNG" and _is_deep_colour(path):
        raise Refusal(f"{path} is a PNG with 16 bits per colour, of which only 8 could be read; use a TIFF.")
    if image.mode == "P" or (image.mode in ("L", "RGB") and "transparency" in image.info):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if image.mode not in ("L", "LA", "RGB", "RGBA", "F") and not image.mode.startswith("I"):
        raise Refusal(f"{path} has the colour mode {image.mode}; convert it to grey or RGB.")
    pixels = np.array(image)
    if image.mode.startswith("I"):
        if pixels.min() < 0 or pixels.max() > np.iinfo(np.uint16).max:
            raise Refusal(f"{path} has more than 16 bits per pixel; convert it to 16 bit or to float.")
        pixels = pixels.astype(np.uint16)
    return _separate(pixels, extras)


def _decode_tiff(path: Path, size: tuple[int, int], extras: dict[str, Any]) -> Photograph:
    import tifffile

    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        if page.shape[:2] != size[::-1]:
            raise Refusal(f"{path} stores its colours one after the other; convert it to interleaved RGB.")
        return _separate(page.asarray(), extras)


def _separate(pixels: np.ndarray, extras: dict[str, Any]) -> Photograph:
    """Separate colours and alpha."""
    if pixels.ndim == 2 or pixels.shape[2] == 3:
        return Photograph(pixels, None, extras)
    if pixels.shape[2] == 2:
        return Photograph(np.ascontiguousarray(pixels[:, :, 0]), pixels[:, :, 1], extras)
    return Photograph(np.ascontiguousarray(pixels[:, :, :3]), pixels[:, :, 3], extras)


def _is_deep_colour(path: Path) -> bool:
    """Whether a PNG has 16 bits per channel and more than one channel, by its first chunk."""
    with open(path, "rb") as file:
        header = file.read(26)
    return len(header) == 26 and header[24] == 16 and header[25] != 0


def _plain_grey(photograph: Photograph) -> bool:
    return photograph.pixels.ndim == 2 and photograph.alpha is None
