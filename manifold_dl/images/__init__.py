"""Pictures: denoising with a dictionary learned from the picture itself.

`denoise` (in `denoising.py`) is what users call. `patches.py` cuts a picture into patches, `noise.py`
measures its noise, `defaults.py` has the default start and update, `reconstruction.py` averages patches.
"""

from manifold_dl.images.defaults import cosines
from manifold_dl.images.denoising import DenoisingResult, denoise
from manifold_dl.images.noise import estimate_sigma, usual_gain
from manifold_dl.images.patches import Picture

__all__ = ["DenoisingResult", "Picture", "cosines", "denoise", "estimate_sigma", "usual_gain"]
