"""The style of all figures: the style file, and a fixed colour, marker and dash for every method.

K-SVD is the orange diamond in every figure; markers and dashes distinguish the methods on a grey print too.
"""

import zlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE = str(Path(__file__).with_name("manifold_dl.mplstyle"))

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, WINE = "#E69F00", "#56B4E9", "#000000", "#882255"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, WINE)  # the cycle of the style file
INK, GREY = "#202020", "#7A7A7A"

Dash = str | tuple[float, tuple[float, ...]]
DOTS, DASHES, DASH_DOTS = ":", "--", "-."
LONG: Dash = (0, (8, 2))
DASH_DOT_DOTS: Dash = (0, (5, 1.5, 1, 1.5, 1, 1.5))

# No two of these have the same colour and marker, and no two in one figure the same marker or dash.
_METHODS: dict[str, tuple[str, str, Dash]] = {
    "MOD": (BLACK, "s", DOTS),
    "K-SVD": (ORANGE, "D", DASHES),
    "primitive SimCO": (SKY, "v", DASH_DOTS),
    "regularized SimCO": (GREEN, "^", LONG),
    "two-step SimCO": (PURPLE, "P", DASH_DOT_DOTS),
    "SimCO, CG": (BLUE, "o", "-"),
    "SimCO, L-BFGS": (WINE, "X", (0, (3, 1))),
    "SimCO, trust region": (VERMILION, "*", "-"),
    "SimCO, trust region, up to 5 starts": (PURPLE, "P", (0, (2, 1))),
    "true dictionary": (GREY, "o", (0, (1, 3))),
    # An optimizer has the style of SimCO with this optimizer; see _SAME.
    "golden section": (ORANGE, "p", DASHES),
    "Armijo": (GREEN, "<", DASH_DOTS),
    "derivative search": (BLUE, "o", "-"),
    "presets.recover": (VERMILION, "h", (0, (6, 1, 2, 1))),
    "scikit-learn": (PURPLE, "d", (0, (1, 1))),
    "SPAMS": (GREY, "H", (0, (2, 2))),
    "SPAMS, OMP": (SKY, "<", DASH_DOTS),
    "SPAMS, ℓ₁, annealed": (WINE, "P", (0, (4, 1.5))),
    "lasso_problem": (GREEN, ">", LONG),
}
_SAME = {
    "SimCO, steepest descent": "primitive SimCO",
    "steepest descent": "primitive SimCO",
    "SimCO, as in the paper": "regularized SimCO",
    "SimCO": "SimCO, CG",
    "SimCO, our default": "SimCO, CG",
    "conjugate gradient": "SimCO, CG",
    "conjugate gradients": "SimCO, CG",
    "CG": "SimCO, CG",
    "L-BFGS": "SimCO, L-BFGS",
    "LBFGS": "SimCO, L-BFGS",
    "trust region": "SimCO, trust region",
    "trust regions": "SimCO, trust region",
    "regularised SimCO": "regularized SimCO",
    "KSVD": "K-SVD",
    "SimCO, trust region, up to 3 starts": "SimCO, trust region, up to 5 starts",
    "GoldenSection": "golden section",
    "BackTrackingLineSearcher": "Armijo",
    "WolfeSearch": "derivative search",
}
_MARKERS = "os^vDP*Xpd<>hH"
_DASHES: tuple[Dash, ...] = ("-", DASHES, DASH_DOTS, DOTS, LONG, DASH_DOT_DOTS)


def style() -> AbstractContextManager[None]:
    """Use the style of all our figures inside a ``with`` block.

    For a whole session, call ``plt.style.use(manifold_dl.plotting.STYLE)``.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import matplotlib
    >>> before = matplotlib.rcParams["savefig.dpi"]
    >>> with style():
    ...     print(matplotlib.rcParams["savefig.dpi"], matplotlib.rcParams["axes.spines.top"])
    200.0 False
    >>> matplotlib.rcParams["savefig.dpi"] == before
    True
    """
    import matplotlib.style

    return matplotlib.style.context(STYLE)


def method_style(name: str) -> dict[str, Any]:
    """Return colour, marker and dash of a method, the same in every figure.

    Parameters
    ----------
    name : str
        "MOD", "K-SVD", "primitive SimCO", "regularized SimCO", "two-step SimCO", "SimCO, CG", "SimCO,
        L-BFGS", "SimCO, trust region", "steepest descent", "golden section", "Armijo", "derivative search",
        ...; upper and lower case are the same. The style of any other name depends on the name alone.

    Returns
    -------
    dict
        With the keys ``color``, ``marker`` and ``linestyle``, for ``ax.plot(x, y, **method_style(name))``.

    Examples
    --------
    >>> method_style("K-SVD")
    {'color': '#E69F00', 'marker': 'D', 'linestyle': '--'}
    >>> method_style("trust region") == method_style("SimCO, trust region")
    True
    """
    name = str(name)
    look = _KNOWN.get(name.casefold().strip())
    if look is None:
        number = zlib.crc32(name.encode())  # hash() of a string differs from run to run
        number, colour = divmod(number, len(COLOURS))
        number, marker = divmod(number, len(_MARKERS))
        look = COLOURS[colour], _MARKERS[marker], _DASHES[number % len(_DASHES)]
    return dict(zip(("color", "marker", "linestyle"), look, strict=True))


_KNOWN = {name.casefold(): look for name, look in _METHODS.items()}
_KNOWN |= {name.casefold(): _METHODS[same] for name, same in _SAME.items()}


def as_axes(ax: "Axes | None", projection: str | None = None) -> "Axes":
    """Return the given `ax`, or that of a new figure.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Returned as it is.
    projection : str, optional
        Of the axes in a new figure, such as "3d".

    Returns
    -------
    ax : matplotlib Axes
    """
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    new: Axes = plt.subplots(subplot_kw={"projection": projection})[1]
    return new
