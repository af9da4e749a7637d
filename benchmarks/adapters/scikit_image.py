"""scikit-image: wavelets (BayesShrink) and non-local means, with the settings of its own example."""

from skimage.restoration import denoise_nl_means, denoise_wavelet

DISTRIBUTION = "scikit-image"


def wavelets(problem):
    import pywt  # noqa: F401  (an optional dependency of scikit-image)

    return 255 * denoise_wavelet(problem.noisy / 255, sigma=problem.sigma / 255, rescale_sigma=True)


def non_local_means(problem):
    settings = {"h": 0.8 * problem.sigma / 255, "patch_size": 5, "patch_distance": 6, "fast_mode": True}
    return 255 * denoise_nl_means(problem.noisy / 255, sigma=problem.sigma / 255, **settings)


PICTURES = {"wavelets (scikit-image)": wavelets, "non-local means (scikit-image)": non_local_means}
