"""The picture on the first page: five atoms in three dimensions find those that the signals were made of.

    python docs/first_picture.py

draws docs/figures/atoms.png. What it shows is computed here, and asserted before it is drawn.
"""

from pathlib import Path

import numpy as np
from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl

PICTURE = Path(__file__).parent / "figures" / "atoms.png"
M, D, N, S = 3, 5, 60, 2
RIDGES, STEPS = [0.1, 0.01, 1e-3, 1e-4, 0.0], 12  # twelve steps for each ridge
VIEW = 30, -60  # elevation and azimuth of the view, in degrees


def descent(seed=11):
    """All dictionaries of a steepest descent, while the ridge is reduced to zero, and the true one."""
    truth, X, Y = mdl.datasets.synthetic(M, D, N, sparsity=S, rng=seed)
    path = [mdl.manifolds.Spheres(M, D).random_point(rng=1)]
    for ridge in RIDGES:
        problem = mdl.update_problem(Y, X, mu=ridge)
        for _ in range(STEPS):
            one_step = SteepestDescent(line_searcher=mdl.WolfeSearch(), max_iterations=1, verbosity=0)
            path.append(one_step.run(problem, initial_point=path[-1]).point)
    # An atom and its negative are equivalent: of the two we take the one that is visible.
    path = np.array(path) * np.sign(towards(VIEW) @ path[-1])
    return path, truth * np.sign(np.vecdot(path[-1], truth, axis=0))


def towards(view):
    """The unit vector from the middle of the sphere to the viewer."""
    elevation, azimuth = np.radians(view)
    return np.array(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    )


def draw():
    import matplotlib.pyplot as plt

    path, truth = descent()
    angles = np.degrees(2 * np.arcsin(np.linalg.norm(path - truth, axis=1) / 2))  # steps × atoms
    assert np.all(angles[0] > 30) and np.all(angles[-1] < 0.01)
    with mdl.plotting.style():
        colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
        figure = plt.figure(figsize=(9.4, 4.0), layout="constrained")
        globe = figure.add_subplot(1, 2, 1, projection="3d")
        ax = figure.add_subplot(1, 2, 2)
        for i, colour in zip(range(D), colours, strict=False):
            mdl.plotting.plot_sphere_path(path[:, :, i], globe, color=colour, view=VIEW)
            ax.semilogy(angles[:, i], color=colour)
        globe.set_title("Five atoms on their sphere")
        for stage, ridge in enumerate(RIDGES):
            if stage:
                ax.axvline(stage * STEPS, color="0.6", linewidth=0.8, linestyle=":")
            ax.text((stage + 0.5) * STEPS, 170, f"μ = {ridge:g}", ha="center", fontsize=9, color="0.35")
        ax.set(xlabel="steps of steepest descent", ylabel="degrees", ylim=(5e-5, 400), xlim=(0, None))
        ax.set_title("How far from the atoms that made the signals")
        figure.savefig(PICTURE, dpi=160)


if __name__ == "__main__":
    draw()
