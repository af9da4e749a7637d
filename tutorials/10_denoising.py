"""
Learning from pictures: denoising your own photograph
=====================================================

A photograph taken in the dark is full of noise. In this tutorial a dictionary is learned from its own
patches, and the photograph is rebuilt from the atoms without the noise. On the way you will see why a
dictionary can separate a picture from noise at all, what learned atoms look like, how noise is measured in a
picture without a clean copy, and what happens if the estimate is wrong.

You need NumPy. Dictionaries and codes are the subject of :ref:`sphx_glr_tutorials_03_dictionary_update.py`;
here it is enough to know that a signal is a mixture of a few *atoms*, the columns of a dictionary D, and that
the weights of the mixture are its *code* x.
"""

# %%
# A photograph with noise
# -----------------------
# We take a piece of a picture that comes with scikit-image, so that all readers see the same. For your own,
# put ``skimage.io.imread("me.jpg")`` in its place. (A piece, to save time, which is proportional to the
# number of pixels.) Then we add Gaussian noise of standard deviation 25, on a scale where black is 0 and
# white is 255.

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from skimage import data

import manifold_dl as mdl
from manifold_dl.images import Picture, cosines, denoise, estimate_sigma

plt.style.use(mdl.plotting.STYLE)
# sphinx_gallery_thumbnail_number = 3
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#7A7A7A"

clean = data.camera()[40:200, 180:340].astype(float)
sigma = 25.0
noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# How bad is it? Pictures are compared by their *peak signal-to-noise ratio* (PSNR), in decibel: ten times
# the logarithm of 255² over the mean squared error. Three decibel more are half the squared error.


def psnr(picture):
    return 10 * np.log10(255**2 / np.mean((picture - clean) ** 2))


def show(ax, picture, title):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=255)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()


figure, axes = plt.subplots(1, 2, figsize=(8, 4.1))
show(axes[0], clean, "what the camera should have seen")
show(axes[1], noisy, f"what it saw: {psnr(noisy):.1f} dB")

# %%
# A picture is compressible, noise is not
# ---------------------------------------
# A whole photograph is too large to be a signal, so we cut it into small patches: every window of 8×8
# pixels is one signal of length 64, and neighbouring windows overlap. The mean of each patch is put
# aside, because it is hardly disturbed: the noise of 64 pixels averages out to an eighth.
#
# For atoms we begin with products of cosines in both directions, the waves that JPEG is made of: 128 of
# them, twice as many as there are dimensions. And we look at 2,000 patches, from the same places of both
# pictures.

places = np.random.default_rng(1)
noisy_patches = Picture.of(noisy, patch_size=8, stride=1).random_patches(2000, places)
places = np.random.default_rng(1)
clean_patches = Picture.of(clean, patch_size=8, stride=1).random_patches(2000, places)
noise = noisy_patches - clean_patches
D_cosines = cosines(Picture.of(noisy, patch_size=8, stride=1), 128)

# %%
# Now the main experiment. We represent the clean patches by more and more atoms, chosen greedily by
# :class:`~manifold_dl.OMP`, and measure what is left over of their energy. We do the same with the noise
# alone. And then with the noisy patches, where we compare the result with the clean ones.

counts = np.arange(1, 21)
left_of_picture, left_of_noise, wrong, left_of_both = [], [], [], []
for count in counts:
    coder = mdl.OMP(sparsity=int(count))
    explain = lambda signals, coder=coder: D_cosines @ coder.encode(signals, D_cosines)
    left_of_picture.append(np.mean((clean_patches - explain(clean_patches)) ** 2) / np.mean(clean_patches**2))
    left_of_noise.append(np.mean((noise - explain(noise)) ** 2) / np.mean(noise**2))
    explained = explain(noisy_patches)
    wrong.append(np.sqrt(np.mean((clean_patches - explained) ** 2)))
    left_of_both.append(np.sqrt(np.mean((noisy_patches - explained) ** 2)))

figure, (fractions, errors) = plt.subplots(1, 2, figsize=(10, 4))
ticks = [1, 5, 10, 15, 20]
fractions.plot(counts, left_of_picture, "o-", ms=4, color=BLUE, label="of the picture")
fractions.plot(counts, left_of_noise, "s-", ms=4, color=VERMILION, label="of the noise")
fractions.set(xlabel="atoms per patch", ylabel="fraction of the energy left over", ylim=(0, 1), xticks=ticks)
fractions.set_title("Few atoms explain the picture, not the noise")
fractions.legend()
errors.plot(counts, wrong, "D-", ms=4, color=GREEN, label="distance from the clean patches")
errors.plot(counts, left_of_both, "^-", ms=4, color=GREY, label="distance from the noisy patches")
errors.axhline(sigma, color="k", lw=1, ls=":")
errors.annotate("σ", (20, sigma), (0, 3), textcoords="offset points", ha="center")
errors.set(xlabel="atoms per patch", ylabel="grey levels per pixel", ylim=(0, 34), xticks=ticks)
errors.set_title("Past a few atoms the noise comes back")
errors.legend()

# %%
# On the left: a handful of atoms explains most of a clean patch, because pictures consist of edges and
# gentle slopes, and waves represent those well. Noise has no structure, so every atom takes away a small
# fraction and no more.
#
# On the right: with every atom the noisy patches are matched better (grey). But the distance from the truth
# (green) falls only as long as the atoms represent the picture; after that they represent the noise. The
# minimum is about where what is left over is as large as the noise, and that is something we can see
# *without* the clean picture. So the method is: for every patch y take the fewest atoms that reach the
# noise level,
#
# .. math::
#
#    \min_x \; \|x\|_0 \quad \text{so that} \quad \|y - D x\|^2 \;\le\; 64 \, (C \sigma)^2 ,
#
# where :math:`\|x\|_0` counts the atoms, and C is a little more than one: 1.15, so that a patch of pure
# noise gets no atom at all, but once in 28 times. (Without its mean such a patch has 63 degrees of
# freedom, and :math:`\chi^2_{63}` exceeds :math:`64 \cdot 1.15^2` with probability 1/27.9.) Every pixel
# lies in up to 64 patches; their average is the result.

pure_noise = sigma * np.random.default_rng(2).standard_normal((64, 20_000))
pure_noise -= pure_noise.mean(axis=0)
counted = np.mean(np.sum(pure_noise**2, axis=0) > 64 * (1.15 * sigma) ** 2)
foretold = scipy.stats.chi2.sf(64 * 1.15**2, df=63)
print(
    f"patches of pure noise that get an atom: one in {1 / counted:.1f}; foretold: one in {1 / foretold:.1f}"
)

# %%
# :func:`~manifold_dl.images.denoise` does it, and learns a dictionary first. For a moment we take the
# learning away. An update rule is anything that takes signals, dictionary and codes, and returns the last
# two, so this one learns nothing:


def learn_nothing(signals, dictionary, codes, **_):
    return dictionary, codes


with_cosines = denoise(noisy, sigma, n_atoms=128, max_iter=1, update=learn_nothing, refine=None)
print(f"noisy {psnr(noisy):.2f} dB, with cosines {psnr(with_cosines.image):.2f} dB")

# %%
# Learning from the picture
# -------------------------
# Cosines suit pictures in general. This one has an ear, a collar and a camera. So let the atoms move: code
# the noisy patches, update the dictionary by :class:`~manifold_dl.SimCO`, and so on, five times. All
# patches are noisy, but their noise has all directions, and the atoms move towards what patches have in
# common.

learned = denoise(noisy, sigma, n_atoms=128, max_iter=5, refine=None)

figure, axes = plt.subplots(1, 3, figsize=(11, 4))
show(axes[0], noisy, f"noisy: {psnr(noisy):.1f} dB")
show(axes[1], with_cosines.image, f"cosines: {psnr(with_cosines.image):.1f} dB")
show(axes[2], learned.image, f"learned from the noisy picture: {psnr(learned.image):.1f} dB")

gain = psnr(learned.image) - psnr(with_cosines.image)
print(f"learned {psnr(learned.image):.2f} dB, which is {gain:.2f} dB more than with cosines")

# %%
# Most of the gain comes from sparsity itself, with any sensible dictionary. Learning adds about half a
# decibel, a tenth of the squared error that was left: the ear, the camera and the edge of the hair have
# fewer ripples now.
#
# What has become of the atoms? Let us look at those that have turned most. An atom and its negative are
# the same to us, so we measure the angle between *lines*.

line = mdl.manifolds.Lines(64, 1)
D_learned = learned.dictionary
turned = [line.dist(D_cosines[:, [i]], D_learned[:, [i]]) for i in range(D_learned.shape[1])]
most = np.argsort(turned)[::-1][:48]

figure, axes = plt.subplots(1, 2, figsize=(9, 3.9))
mdl.plotting.plot_atoms(D_cosines[:, most], axes[0], columns=8)
mdl.plotting.plot_atoms(D_learned[:, most], axes[1], columns=8)
axes[0].set_title("48 of the cosines ...")
axes[1].set_title("... and what they became")
print(f"half of the atoms have turned by more than {np.degrees(np.median(turned)):.0f} degrees")

# %%
# High frequencies, of which the picture has little, became edges at all angles and places, corners,
# and spots of light: what *this* picture is made of.

# %%
# How much noise is there?
# ------------------------
# So far we knew σ. With a photograph of your own you do not, and there is no clean copy. But one can look
# where there is nearly no picture: in the finest details. Cut the picture into squares of 2×2 pixels a, b,
# c, d and form
#
# .. math::
#
#    \delta = \frac{a - b - c + d}{2} .
#
# In this difference of differences all that is flat cancels, and all slopes and straight edges that run
# along the pixels. The noise does not cancel: four independent errors, halved, have the standard deviation
# σ again. Where the picture does show through, :math:`\delta` is large but rare, and the *median* of its
# size hardly changes. For Gaussian noise that median is 0.6745 σ, so one divides by this number (Donoho's
# rule). The standard deviation of the details does change:


def finest_details(picture):
    a, b, c, d = picture[::2, ::2], picture[::2, 1::2], picture[1::2, ::2], picture[1::2, 1::2]
    return ((a - b - c + d) / 2).ravel()


print("true σ   by the median   by the standard deviation")
by_median, by_deviation = {}, {}
for s in (2, 5, 10, 25):
    details = finest_details(clean + (noisy - clean) * s / sigma)
    by_median[s], by_deviation[s] = np.median(np.abs(details)) / 0.6745, details.std()
    print(f"{s:6d} {by_median[s]:15.1f} {by_deviation[s]:27.1f}")

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6))
for ax, s in zip(axes, (5, 25), strict=True):
    details = finest_details(clean + (noisy - clean) * s / sigma)
    x = np.linspace(-4 * s, 4 * s, 201)
    ax.hist(details, bins=x[::4], density=True, color=GREY, alpha=0.45)
    for width, look, name in ((by_median[s], "-", "median"), (by_deviation[s], "--", "standard deviation")):
        bell = np.exp(-((x / width) ** 2) / 2) / width / np.sqrt(2 * np.pi)
        ax.plot(x, bell, look, color=BLUE if look == "-" else VERMILION, label=f"{name}: {width:.1f}")
    ax.set(xlabel="finest details δ", ylabel="density", title=f"σ = {s}")
    ax.margins(y=0.3)
    ax.legend(loc="upper right")

# %%
# With strong noise both are good. With weak noise the edges of the picture dominate the standard deviation,
# which is three times too large at σ = 2; the median is too large as well, but less. ``denoise(noisy)``
# without a ``sigma`` uses the median; :func:`~manifold_dl.images.estimate_sigma` is the function.

# %%
# And if σ is wrong?
# ------------------
# Then the coder stops in the wrong place. We denoise the picture with other values of σ.

assumed = np.array([5, 15, 20, 25, 30, 40, 60])
few = {"n_atoms": 128, "max_iter": 2, "n_patches": 8000, "refine": None}
results = [denoise(noisy, float(s), **few).image for s in assumed]
scores = np.array([psnr(result) for result in results])

figure, axes = plt.subplot_mosaic("aabc", figsize=(11, 3.6))
axes["a"].plot(assumed, scores, "o-", color=BLUE)
axes["a"].axvline(sigma, color="k", lw=1, ls=":")
axes["a"].annotate("true σ", (sigma, 20.6), (-5, 0), textcoords="offset points", ha="right")
axes["a"].axvline(by_median[25], color=GREEN, lw=1.5, ls="--")
axes["a"].annotate("estimated", (by_median[25], 20.6), (5, 0), textcoords="offset points", color=GREEN)
axes["a"].set(xlabel="assumed σ", ylabel="PSNR (dB)", ylim=(20, None))
show(axes["b"], results[1], "σ = 15: the noise stays")
show(axes["c"], results[-1], "σ = 60: the face goes")

# %%
# If σ is too small, noise remains, because the coder represents it. If it is too large, details are lost. A
# few per cent, which is what the estimate is off by, cost next to nothing.

# %%
# A second look
# -------------
# So far every patch was represented by itself; that is what ``refine=None`` said. But a collar has many
# places that look alike, and with the first result at hand they can be found. Without ``refine=None`` the
# noisy patches are represented once more, each by similar patches of the first result
# (:class:`~manifold_dl.images.SimilarPatches`).

refined = denoise(noisy, sigma, n_atoms=128, max_iter=5)
print(f"learned {psnr(learned.image):.2f} dB, after a second look {psnr(refined.image):.2f} dB")

# %%
# All of this is one line in a shell, for pictures in grey and in colour::
#
#     manifold-dl denoise me.jpg better.png

# %%
# Exercise
# --------
# The dictionary was learned from the noisy picture itself. Would atoms of *another* picture do? Learn 128
# of them from a clean picture of Greek coins, ``data.coins()``, and clean the photograph with them,
# without any further learning. Where between 'cosines' and 'learned from the noisy picture' do you expect
# the result?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# As good as its own, in spite of all that was said about ears and collars: edges are edges, on coins as on
# faces, and a clean picture is better to learn from than a noisy one. (It is not always so. Coins denoised
# with the atoms of a photograph are worse than with their own; try it.)

coins = Picture.of(data.coins().astype(float), patch_size=8, stride=1)
D_coins = mdl.learn_dictionary(
    coins.random_patches(8000, np.random.default_rng(0)),
    n_atoms=128,
    coder=mdl.OMP(sparsity=5),
    update=mdl.SimCO(mu=0.5),
    max_iter=5,
    init=D_cosines,
    rng=0,
).dictionary
with_coins = denoise(noisy, sigma, n_atoms=128, init=D_coins, max_iter=1, update=learn_nothing, refine=None)
for name, result in (("cosines", with_cosines), ("coins", with_coins), ("learned from it", learned)):
    print(f"{name:16s} {psnr(result.image):.2f} dB")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * A few atoms explain a picture, and hardly anything of noise. So one stops as soon as what is left over is
#   as large as the noise.
# * Atoms that learn from the noisy picture itself become its edges, and are better than cosines.
# * The noise can be read off the finest details, by their median. Near the true σ little depends on it; far
#   from it, everything.

assert left_of_picture[4] < 0.2 < 0.5 < left_of_noise[4]  # five atoms: the picture, not the noise
best = int(np.argmin(wrong))
assert 0 < best < 8 and wrong[-1] > 1.2 * wrong[best]  # after a few atoms the noise comes back
assert 0.8 * sigma < left_of_both[best] < 1.2 * sigma  # and that is where the noise is reached
assert abs(counted - foretold) < 0.004 and round(1 / foretold) == 28  # three standard errors of the count
assert psnr(with_cosines.image) > psnr(noisy) + 7  # sparsity alone goes most of the way
assert gain > 0.2  # and learning further
assert np.median(turned) > np.radians(30)  # the atoms have gone far for it
assert by_median[2] < 2 * 2 < by_deviation[2]  # the median minds the edges less
assert np.isclose(by_median[25], estimate_sigma(noisy[:, :, None]), rtol=1e-4)  # as does the package
assert scores.argmax() in (2, 3, 4) and scores.max() - scores[0] > 5  # σ has to be about right
assert psnr(refined.image) > psnr(learned.image) + 0.1  # similar patches explain each other
assert psnr(with_coins.image) > psnr(with_cosines.image) + 0.1  # edges are edges

plt.show()
