"""
Half of the picture is missing
==============================

A scratched slide, a broken sensor, a caption printed across a face: some pixels of a picture are lost, and we
know which. In this tutorial half of the pixels are missing, and they are estimated from the other half.
On the way you will see what a *weight* of zero does to a least-squares problem, why a code that fits all
observed pixels can be useless for the others, and what remains impossible.

You need NumPy. Dictionaries, codes and patches are the subject of
:ref:`sphx_glr_tutorials_10_denoising.py`.
"""

# %%
# Half of a picture
# -----------------
# A piece of a photograph, with every second pixel lost at random. We mark them with NaN, "not a number", to
# be sure that the result does not use them.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import manifold_dl as mdl
from manifold_dl.images import Picture, cosines, inpaint
from manifold_dl.images.filling import smooth_fill

plt.style.use(mdl.plotting.STYLE)
# sphinx_gallery_thumbnail_number = 2

clean = data.camera()[60:188, 160:288] / 255
rng = np.random.default_rng(0)
missing = rng.random(clean.shape) < 0.5
incomplete = np.where(missing, np.nan, clean)


def psnr(picture):
    return -10 * np.log10(np.mean((np.clip(picture, 0, 1) - clean) ** 2))


def show(ax, picture, title):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()


figure, axes = plt.subplots(1, 2, figsize=(8, 4.1))
show(axes[0], clean, "the picture")
show(axes[1], np.where(missing, 0, clean), "what is left of it")

# %%
# A weight of zero
# ----------------
# The code x of a signal y minimises Σᵢ (yᵢ − (Dx)ᵢ)². The sum is over entries, so a missing entry is simply
# left out; or, what is the same, every entry has a weight, and that of a missing one is zero:
#
# .. math:: \min_x \sum_i w_i\,(y_i - (Dx)_i)^2.
#
# Whatever stands at an entry of weight zero cannot matter, not even NaN. All coders, and
# :func:`manifold_dl.learn_dictionary`, take ``weights``. One patch of 8×8 pixels, over 256 cosines:

D = cosines(Picture.of(clean, patch_size=8), 256)
place = slice(40, 48), slice(60, 68)
y, w, truth = incomplete[place].reshape(-1, 1), ~missing[place].reshape(-1, 1), clean[place].reshape(-1, 1)
x = mdl.OMP(sparsity=5).encode(y, D, weights=w)
assert np.isfinite(x.data).all()

# %%
# What stands at the missing entries does not matter, to the last bit:

hidden = np.where(w, truth, 1e6)
assert np.array_equal(mdl.OMP(sparsity=5).encode(hidden, D, weights=w).toarray(), x.toarray())

# %%
# Fitting too well
# ----------------
# The more atoms, the better the fit of the observed pixels. For the others four atoms are best: with 25 for
# some 32 pixels there is nothing left to keep them in check.

sizes = np.arange(1, 26)
patches = [(slice(i, i + 8), slice(j, j + 8)) for i in range(0, 120, 8) for j in range(0, 120, 8)]
Y, W = (np.stack([a[p].ravel() for p in patches], axis=1) for a in (clean, ~missing))
seen, unseen = [], []
for size in sizes:
    squares = (Y - D @ mdl.OMP(sparsity=int(size)).encode(Y, D, weights=W)) ** 2
    seen.append(np.sqrt(squares[W].mean()))
    unseen.append(np.sqrt(squares[~W].mean()))

# %%
# The error of the observed pixels only falls; that of the missing ones has a minimum:

figure, ax = plt.subplots(figsize=(6, 3.4))
ax.semilogy(sizes, seen, label="observed pixels")
ax.semilogy(sizes, unseen, label="missing pixels")
ax.set(xlabel="atoms per patch", ylabel="root mean square error")
ax.legend()

# %%
# A little weight for a guess
# ---------------------------
# :func:`manifold_dl.images.inpaint` begins with a guess, a smooth surface through the observed pixels, and
# gives it a weight of 0.2 where pixels are missing. A code may leave the guess where the observed pixels
# ask for it, and not without a reason. The average of all overlapping patches is a better guess; after four
# rounds, with a dictionary learned from the same weighted patches, little changes any more.

smooth = smooth_fill(np.where(missing, 0, clean)[:, :, None], missing[:, :, None])[:, :, 0]
result = inpaint(incomplete, missing)

# %%
# The smooth surface loses the texture; the learned dictionary brings some of it back:

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9))
show(axes[0], np.where(missing, 0, clean), "half of the pixels")
show(axes[1], smooth, f"smooth fill: {psnr(smooth):.1f} dB")
show(axes[2], result.image, f"learned: {psnr(result.image):.1f} dB")

# %%
# What remains impossible
# -----------------------
# A hole that is wider than a patch has no observed pixels to go by. It is filled from its border inwards,
# half a patch per round; in the middle the smooth guess remains.

hole = np.zeros(clean.shape, bool)
hole[50:80, 40:70] = True
filled = inpaint(clean, hole)

figure, axes = plt.subplots(1, 2, figsize=(8, 4.1))
show(axes[0], np.where(hole, 0, clean), "a hole of 30×30 pixels")
show(axes[1], filled.image, "filled in: smooth, and wrong")

error = np.abs(filled.image - clean)

# %%
# Exercise
# --------
# Many programs fill missing entries with zeros (or the mean) and treat these as data. Code the
# patches of above with four atoms each, once with weights and once with zeros in place of the missing pixels.
# How do the errors at the missing pixels compare?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# With zeros the codes have to represent the holes as well, and the missing pixels come out far too dark.

four = mdl.OMP(sparsity=4)
with_weights = np.sqrt(((Y - D @ four.encode(Y, D, weights=W)) ** 2)[~W].mean())
with_zeros = np.sqrt(((Y - D @ four.encode(np.where(W, Y, 0), D)) ** 2)[~W].mean())
print(f"error at the missing pixels: {with_weights:.3f} with weights, {with_zeros:.3f} with zeros")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * A missing entry is a weight of zero; learning and coding need nothing else.
# * Few observed entries and many atoms fit everything and predict nothing. A weak guess keeps them in check.
# * Patches can continue what is near. They cannot invent what is not.

assert seen[-1] < 0.1 * seen[0]  # more atoms fit the observed pixels ever better
assert unseen[-1] > 1.2 * min(unseen) and np.argmin(unseen) < 6  # and the missing ones worse, soon
assert psnr(result.image) > psnr(smooth) + 0.7  # learning beats the smooth surface
assert np.array_equal(result.image[~missing], clean[~missing])  # observed pixels stay
assert error[60:70, 50:60].mean() > error[50:80, 40:42].mean()  # the middle of a hole is a guess
assert with_weights < 0.5 * with_zeros  # zeros are data, too, and wrong

plt.show()
