"""Pictures: denoising with a dictionary learned from the picture itself."""

from manifold_dl.images.denoise import denoise, usual_gain

__all__ = ["denoise", "usual_gain"]
