"""Pictures: denoising and inpainting with a dictionary learned from the picture itself.

`denoise` (in `denoising.py`) and `inpaint` (in `inpainting.py`) are what users call. `patches.py` cuts a
picture into patches, `noise.py` measures its noise, `defaults.py` has the default start and update,
`reconstruction.py` averages patches, `similar.py` is the second look with similar patches, `progress.py`
reports the progress to callbacks, `filling.py` has the smooth fill that inpainting starts from.
"""

from manifold_dl.images.defaults import cosines
from manifold_dl.images.denoising import DenoisingResult, denoise
from manifold_dl.images.inpainting import InpaintingResult, inpaint
from manifold_dl.images.noise import estimate_sigma, usual_gain
from manifold_dl.images.patches import Picture
from manifold_dl.images.similar import SimilarPatches

__all__ = [
    "DenoisingResult",
    "InpaintingResult",
    "Picture",
    "SimilarPatches",
    "cosines",
    "denoise",
    "estimate_sigma",
    "inpaint",
    "usual_gain",
]
