"""Pictures as files: PNG, JPEG and TIFF, grey or RGB, with or without alpha, 8 and 16 bit, float in TIFF.

The header is read first: a picture that is too large is refused before a single pixel is unpacked. What
denoising does not touch (alpha, colour profile, EXIF) comes back as it was.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}


@dataclass
class Photograph:
    """Pixels as `denoise` takes them, and what else the file held."""

    pixels: np.ndarray  # rows×columns or rows×columns×3; uint8, uint16 or float32
    alpha: np.ndarray | None = None
    extras: dict[str, Any] = field(default_factory=dict)  # colour profile and EXIF, for Pillow's save


def read_picture(path, max_pixels):
    """Read a picture of at most `max_pixels` pixels."""
    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # ours below is checked as early
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damage that does not matter; what matters is an error
            with Image.open(path, formats=["PNG", "JPEG", "TIFF"]) as image:
                columns, rows = image.size
                if rows * columns > max_pixels:
                    raise Refusal(
                        f"{path} has {columns}×{rows} pixels, more than the limit of {max_pixels}; "
                        "raise it with --max-pixels."
                    )
                return _decode(image, path)
    except Refusal:
        raise
    except (FileNotFoundError, PermissionError):
        raise
    except Image.UnidentifiedImageError:
        raise ValueError(f"{path} is no PNG, JPEG or TIFF picture, or a damaged one.") from None
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise ValueError(f"{path} is damaged or of an unknown kind: {error}.") from None
    finally:
        Image.MAX_IMAGE_PIXELS = limit


class Refusal(ValueError):
    """A sound picture that we do not take."""


def require_room(photograph, path):
    """Refuse a kind of file that cannot hold such a picture, before any work is done."""
    pixels, kind = photograph.pixels, FORMATS[path.suffix.lower()]
    if kind == "JPEG" and photograph.alpha is not None:
        raise ValueError(f"{path}: JPEG knows no transparency; write a .png or .tif.")
    if kind == "JPEG" and pixels.dtype != np.uint8:
        raise ValueError(f"{path}: JPEG holds 8 bits, the picture has {pixels.dtype}; write a .tif.")
    if kind == "PNG" and (
        pixels.dtype.kind == "f" or (pixels.dtype == np.uint16 and not _plain_grey(photograph))
    ):
        raise ValueError(f"{path}: this picture of {pixels.dtype} does not fit a PNG; write a .tif.")


def write_picture(file, photograph, path):
    """Write to an open file, in the format that the name of `path` asks for."""
    from PIL import Image

    pixels, kind = photograph.pixels, FORMATS[path.suffix.lower()]
    if photograph.alpha is not None:
        pixels = np.dstack([pixels, photograph.alpha])
    if kind == "TIFF" and pixels.dtype != np.uint8:
        import tifffile

        samples = {} if pixels.ndim == 2 else {"photometric": "rgb" if pixels.shape[2] > 2 else "minisblack"}
        if photograph.alpha is not None:
            samples |= {"planarconfig": "contig", "extrasamples": ["unassalpha"]}
        profile = photograph.extras.get("icc_profile")
        tifffile.imwrite(file, pixels, metadata=None, iccprofile=profile, **samples)
        return
    options = {
        "PNG": {},
        "JPEG": {"quality": 95, "subsampling": 0},
        "TIFF": {"compression": "tiff_adobe_deflate"},
    }
    Image.fromarray(pixels).save(file, format=kind, **options[kind], **photograph.extras)


def _decode(image, path):
    extras = {name: image.info[name] for name in ("icc_profile", "exif", "dpi") if image.info.get(name)}
    if image.format == "TIFF" and image.n_frames > 1:
        raise Refusal(f"{path} holds {image.n_frames} pictures; give one of them.")
    if image.format == "TIFF":
        bits, samples = image.tag_v2.get(258, (1,)), image.tag_v2.get(277, 1)
        if max(bits) == 16 and samples > 1:  # Pillow would drop half the bits
            return _decode_tiff(path, image.size, extras)
    if image.format == "PNG" and _is_deep_colour(path):
        raise Refusal(f"{path} is a PNG with 16 bits per colour, of which only 8 could be read; give a TIFF.")
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


def _decode_tiff(path, size, extras):
    import tifffile

    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        if page.shape[:2] != size[::-1]:
            raise Refusal(f"{path} stores its colours one after the other; convert it to interleaved RGB.")
        return _separate(page.asarray(), extras)


def _separate(pixels, extras):
    """Colours and alpha."""
    if pixels.ndim == 2 or pixels.shape[2] == 3:
        return Photograph(pixels, None, extras)
    if pixels.shape[2] == 2:
        return Photograph(np.ascontiguousarray(pixels[:, :, 0]), pixels[:, :, 1], extras)
    return Photograph(np.ascontiguousarray(pixels[:, :, :3]), pixels[:, :, 3], extras)


def _is_deep_colour(path):
    """16 bits a channel and more than one channel, by the first chunk of a PNG."""
    with open(path, "rb") as file:
        header = file.read(26)
    return len(header) == 26 and header[24] == 16 and header[25] != 0


def _plain_grey(photograph):
    return photograph.pixels.ndim == 2 and photograph.alpha is None
