"""Theorem 1: gradient descent finds the best rank-one approximation, unless it starts in a null set.

With one atom the objective is f(u) = min_w ‖A − u wᵀ‖², a function on the sphere. Its minima are ±u₁, the
leading left singular vector. Along a gradient path the angle θ to the nearer one decreases, so every path
ends there, except those that start in B, the great circle orthogonal to u₁: they stay in it and end at the
second singular vector, a saddle. Both are lemmas in the paper's appendix. Here A has three rows, so that the
sphere can be drawn.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, select
from manifold_dl.manifolds import Spheres
from manifold_dl.plotting import plot_sphere_path
from manifold_dl.plotting.style import BLUE, INK, VERMILION
from manifold_dl.problem.update_problem import update_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTING = {
    "singular_values": [1.0, 0.75, 0.45],
    "columns": 8,
    "starts": 24,
    "close": 1e-3,  # radians from B, the start of one more path
    "step": 0.1,  # times the gradient; short, because the theorem is about infinitesimal steps
    "steps": 150,  # B repels: a rounding error orthogonal to it grows by 9 % per step, to 1e-10
}
QUICK = {"starts": 12}


def parts(parameters: Parameters) -> list[Part]:
    """Return the starts: random ones, one close to B, and one in B."""
    return [{"start": start} for start in range(parameters["starts"] + 2)]


def measure(parameters: Parameters, seed: int, start: int) -> list[Row]:
    """Compute one gradient path: the points, the angle θ in degrees and the value."""
    U, A = _matrix(parameters, seed)
    u, in_bad_set = _start(U, parameters, seed, start)
    problem = update_problem(A, np.ones((1, A.shape[1]), bool), threads=1)
    sphere = Spheres(3, 1)
    rows: list[Row] = []
    for step in range(parameters["steps"] + 1):
        # The arctangent is accurate where the arccosine is not: close to 0 and to 90 degrees.
        along, across = abs(U[:, 0] @ u), np.linalg.norm(U[:, 1:].T @ u)
        rows.append(
            {
                "start": start,
                "step": step,
                **{f"u{i}": float(u[i, 0]) for i in range(3)},
                "theta": float(np.degrees(np.arctan2(across, along[0]))),
                "from_bad_set": float(np.degrees(np.arctan2(along[0], across))),
                "value": float(problem.cost(u)),
                "in_bad_set": int(in_bad_set),
            }
        )
        u = sphere.exp(u, -parameters["step"] * problem.riemannian_gradient(u))
    return rows


def _matrix(parameters: Parameters, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the left singular vectors of a 3×n matrix with the given singular values, and the matrix."""
    rng = np.random.default_rng([0, seed])
    U, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    V, _ = np.linalg.qr(rng.standard_normal((parameters["columns"], 3)))
    return U, U * parameters["singular_values"] @ V.T


def _start(U: np.ndarray, parameters: Parameters, seed: int, start: int) -> tuple[np.ndarray, bool]:
    """Return a 3×1 unit vector and whether it is in B."""
    rng = np.random.default_rng([1, start, seed])
    u = Spheres(3, 1).random_point(rng)
    if start < parameters["starts"]:
        return u, False
    angle = rng.uniform(0.6, 1.0)  # from the third singular vector, where the gradient would be zero
    u = np.sin(angle) * U[:, [1]] + np.cos(angle) * U[:, [2]]
    close = parameters["close"] if start == parameters["starts"] else 0.0
    return np.cos(close) * u + np.sin(close) * U[:, [0]], close == 0.0


def draw(table: Table) -> "Figure":
    """Draw f on the sphere with the paths, and θ along them."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10.0, 4.9))
    sphere = figure.add_subplot(1, 2, 1, projection="3d")
    plane = figure.add_subplot(1, 2, 2)
    _draw_sphere(sphere, table)
    steps = int(table["step"].max())
    for start in in_order(table["start"]):
        path = select(table, start=start)
        bad = path["in_bad_set"][0]
        colour = VERMILION if bad else INK
        points = _points(path)
        plot_sphere_path(
            points, sphere, color=colour, linewidth=2.2 if bad else 1.1, marker="none", ends=False
        )
        plot_sphere_path(points[:1], sphere, color=colour, markersize=5.5, ends=False)
        line: dict[str, Any] = {
            "color": colour,
            "linewidth": 2.2 if bad else 1.0,
            "alpha": 1.0 if bad else 0.75,
        }
        plane.plot(path["step"], path["theta"], **line)
    plane.set(xlabel="steps along the gradient", ylabel="θ, degrees to the nearer of ±u₁", ylim=(-2, 95))
    plane.set(title="θ decreases along every path outside B", yticks=range(0, 91, 15), xlim=(0, steps))
    plane.annotate(
        "started in B: it stays there", (steps, 90), (-2, -5), textcoords="offset points", ha="right",
        va="top", color=VERMILION, fontsize="small",
    )  # fmt: skip
    return figure


def _draw_sphere(ax: Any, table: Table) -> None:
    """Draw f as colours, its critical points, and B, with the path in B and most end points in front."""
    form = quadratic_form(table)
    vectors = np.linalg.eigh(form)[1].T  # minimum, saddle, maximum; so are their opposites
    ends = _points(select(table, step=table["step"].max()))
    front = ends.sum(axis=0) + _points(select(table, in_bad_set=1, step=0))[0]
    u1, u2, u3 = (u if u @ front >= 0 else -u for u in vectors)
    plot_sphere_path(ax=ax, cost=lambda u: u @ form @ u, view=_view_from(u1 + 0.9 * u2 + 0.45 * u3))
    turn = np.linspace(0, 2 * np.pi, 181)[:, None]
    bad_set = np.cos(turn) * u2 + np.sin(turn) * u3
    plot_sphere_path(
        bad_set, ax, color=VERMILION, linestyle=(0, (4, 2)), linewidth=1.3, marker="none", ends=False
    )
    star: dict[str, Any] = {"marker": "*", "markersize": 17, "ends": False}
    for sign in (-1, 1):
        plot_sphere_path([sign * u1], ax, color=BLUE, **star)
        plot_sphere_path([sign * u2], ax, color=VERMILION, **star)
    text = {"fontsize": 12, "fontweight": "bold", "ha": "center", "va": "center", "zorder": 6}
    for point, name in ((u1, "u₁"), (u2, "u₂"), (_unit(u2 - u3), "B")):
        ax.text(*(1.13 * point), name, color="white", path_effects=_edge(), **text)
    ax.set_title("f on the sphere: low is dark, B is dashed")


def _edge() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground=INK)]


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def quadratic_form(table: Table) -> np.ndarray:
    """Return the symmetric M with f(u) = uᵀMu, from the values in the table.

    Since f(u) = ‖A‖² − ‖Aᵀu‖² and ‖u‖ = 1, f is a quadratic form. Its six coefficients are fitted by least
    squares to the values along the paths.

    Parameters
    ----------
    table : mapping of str → array
        With the columns ``u0``, ``u1``, ``u2`` and ``value``.

    Returns
    -------
    array (3×3)

    Examples
    --------
    >>> u = np.linalg.qr(np.arange(36.0).reshape(6, 6) ** 0.5)[0][:3] + np.eye(3, 6)
    >>> M = np.diag([1.0, 2.0, 5.0])
    >>> columns = dict(zip(("u0", "u1", "u2"), u, strict=True))
    >>> bool(np.allclose(quadratic_form({**columns, "value": np.vecdot(u.T, u.T @ M)}), M))
    True
    """
    u = _points(table)
    rows, columns = np.triu_indices(3)
    products = u[:, rows] * u[:, columns] * np.where(rows == columns, 1, 2)
    form = np.zeros((3, 3))
    form[rows, columns] = form[columns, rows] = np.linalg.lstsq(products, table["value"])[0]
    return form


def _points(table: Table) -> np.ndarray:
    return np.column_stack([table[f"u{i}"] for i in range(3)])


def _view_from(direction: np.ndarray) -> tuple[float, float]:
    """Return elevation and azimuth, in degrees, of a view from that direction."""
    x, y, z = direction
    return float(np.degrees(np.arctan2(z, np.hypot(x, y)))), float(np.degrees(np.arctan2(y, x)))


def claims(table: Table) -> list[Claim]:
    """Check Theorem 1 and its two lemmas."""
    paths = [select(table, start=start) for start in in_order(table["start"])]
    free = [path for path in paths if not path["in_bad_set"][0]]
    bad = [path for path in paths if path["in_bad_set"][0]]
    falling = sum(bool(np.all(np.diff(path["theta"]) <= 0)) for path in free)  # six digits: ties at the end
    converged = sum(bool(path["theta"][-1] < 1) for path in free)
    away = max(float(np.max(path["from_bad_set"])) for path in bad)
    near = min(float(path["from_bad_set"][0]) for path in free)
    return [
        Claim(
            "outside B, θ decreases along the path", f"{falling} of {len(free)} paths", falling == len(free)
        ),
        Claim(
            "every such path ends at a global minimum",
            f"{converged} of {len(free)} end within a degree of ±u₁, one of which began {near:.2f}° from B",
            converged == len(free),
        ),
        Claim("a path that starts in B stays in B", f"at most {away:.0e}° away from it", away < 1e-6),
    ]


theorem1 = Study(
    "theorem1", "The rank-one landscape: θ along gradient paths", SETTING, QUICK, parts, measure, draw, claims
)
