"""The two drawings of the design page, as SVG: the data flow of one iteration, and the layers of imports.

    python docs/diagrams.py

writes both into docs/figures. The layers are read from the import contract in pyproject.toml, which the
linter checks; a test fails when a file is not up to date.
"""

import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
FIGURES = Path(__file__).parent / "figures"

INK, SOFT, LINE, PAPER = "#1f2933", "#52606d", "#7b8794", "#ffffff"
FIXED, FIXED_EDGE = "#eef1f4", "#9aa5b1"  # what stays
PLUG, PLUG_EDGE = "#dcebf7", "#0072b2"  # what can be replaced
DATA = "#b34700"  # what is passed along an arrow


FONT = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"
TIP = (
    '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    f'orient="auto-start-reverse"><path d="M0 0.8 L10 5 L0 9.2 z" fill="{LINE}"/></marker>'
)


def svg(width, height, title, parts):
    """A picture with a light ground of its own, so that it reads on dark pages too."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f"<defs>{TIP}</defs>",
        rect(0, 0, width, height, PAPER, "none", rounded=10),
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def rect(x, y, width, height, fill, edge, rounded=7, dashed=False):
    dashes = ' stroke-dasharray="6 5"' if dashed else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{rounded}" fill="{fill}" '
        f'stroke="{edge}" stroke-width="1.4"{dashes}/>'
    )


def text(x, y, words, size=13, anchor="middle", colour=INK, weight="normal", style="normal"):
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}" font-style="{style}">{escape(words)}</text>'
    )


def box(x, y, width, height, name, *lines, swap=False):
    """A rounded box with a name and some smaller lines under it; x and y are its top left corner."""
    middle, centre = y + height / 2 - 8 * len(lines), x + width / 2
    return "\n".join(
        [
            rect(x, y, width, height, *((PLUG, PLUG_EDGE) if swap else (FIXED, FIXED_EDGE))),
            text(centre, middle + 5, name, 14, weight="600"),
            *(text(centre, middle + 5 + 17 * i, line, 12, colour=SOFT) for i, line in enumerate(lines, 1)),
        ]
    )


def arrow(*points, both=False):
    """An arrow along points (x, y)."""
    path = " L".join(f"{x:g} {y:g}" for x, y in points)
    tips = 'marker-start="url(#tip)" marker-end="url(#tip)"' if both else 'marker-end="url(#tip)"'
    return f'<path d="M{path}" fill="none" stroke="{LINE}" stroke-width="1.6" {tips}/>'


def data(x, y, words, anchor="middle"):
    """What is passed along an arrow."""
    return text(x, y, words, 12.5, anchor, DATA, weight="600")


def flow():
    """The data flow of one iteration of learning."""
    parts = [*loop(), *update(), *arithmetic(), *legend()]
    return svg(800, 714, "The data flow of one iteration of learning, and which part calls which", parts)


def loop():
    """What users call, and one iteration."""
    return [
        box(12, 20, 242, 48, "ManifoldDictionaryLearning", "samples in rows, transposed"),
        arrow((254, 44), (304, 44)),
        data(279, 36, "Y"),
        box(304, 20, 206, 48, "learn_dictionary", "the outer loop"),
        box(566, 20, 214, 48, "callbacks", "history, progress, checkpoint", swap=True),
        arrow((510, 44), (566, 44)),
        data(538, 36, "Step"),
        rect(20, 100, 760, 120, "none", "#cbd2d9", rounded=10, dashed=True),
        text(34, 120, "every iteration", 12, "start", SOFT, style="italic"),
        arrow((400, 68), (400, 100)),
        box(50, 136, 210, 62, "coder", "encode(Y, D)", "OMP, Lasso, ...", swap=True),
        box(540, 136, 210, 62, "update rule", "update(Y, D, X)", "SimCO, KSVD, MOD", swap=True),
        arrow((260, 154), (540, 154)),
        data(400, 147, "codes X on a support Ω"),
        arrow((540, 182), (260, 182)),
        data(400, 199, "dictionary D, and X that fits it"),
    ]


def update():
    """One set of atoms: the problem, and what is replaceable around it."""
    return [
        box(20, 262, 176, 48, "schedule", "which atoms move: I", swap=True),
        box(20, 330, 176, 48, "manifold", "where they may move", swap=True),
        box(20, 398, 176, 48, "regularizers", "penalties R(D)", swap=True),
        box(
            290,
            262,
            220,
            184,
            "DictionaryProblem",
            "a pymanopt.Problem:",
            "f, ∇f, H[E] and more,",
            "with counts and a record",
        ),
        arrow((645, 198), (645, 238), (460, 238), (460, 262)),
        data(652, 234, "for every set I", "start"),
        arrow((196, 286), (290, 286)),
        arrow((196, 354), (290, 354)),
        arrow((196, 422), (290, 422)),
        box(604, 262, 176, 62, "optimizer", "Pymanopt's own,", "LBFGS, ...", swap=True),
        box(604, 384, 176, 62, "line searcher", "WolfeSearch,", "GoldenSection, ...", swap=True),
        arrow((604, 293), (510, 293), both=True),
        data(557, 285, "f, ∇f, H, P"),
        arrow((692, 324), (692, 384), both=True),
        data(700, 358, "step size", "start"),
        arrow((604, 415), (510, 415), both=True),
        data(557, 407, "φ(t), φ′(t)"),
    ]


def arithmetic():
    """From the problem down to the kernels."""
    return [
        arrow((350, 446), (350, 486)),
        data(342, 471, "D", "end"),
        arrow((450, 486), (450, 446)),
        data(458, 471, "values, gradients, codes", "start"),
        box(170, 486, 460, 48, "Objective", "the codes follow D; the last evaluations are cached"),
        arrow((400, 534), (400, 566), both=True),
        box(170, 566, 460, 48, "engine", "blocks of signals, sums over a fixed tree: the same bits"),
        arrow((400, 614), (400, 646), both=True),
        # The coder runs on the same blocks: an arrow down the left margin.
        arrow((50, 167), (8, 167), (8, 590), (170, 590)),
        box(170, 646, 460, 48, "kernels", "arrays in, arrays out: compiled with Numba, or plain NumPy"),
    ]


def legend():
    """What the colours of the boxes mean."""
    return [
        rect(664, 632, 16, 16, PLUG, PLUG_EDGE, rounded=3),
        text(688, 645, "replaceable", 12.5, "start"),
        rect(664, 660, 16, 16, FIXED, FIXED_EDGE, rounded=3),
        text(688, 673, "fixed", 12.5, "start"),
    ]


def layers():
    """The layers of the import contract, from the top down."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    contract = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    parts, y = [], 20
    for layer in contract:
        names = [name.strip(" ()") for name in layer.replace("|", ":").split(":")]
        if names == ["__main__"]:
            continue
        lines = wrapped(names, limit=86)
        height = 18 + 20 * len(lines)
        parts.append(rect(20, y, 760, height, FIXED, FIXED_EDGE))
        parts += [text(400, y + 23 + 20 * i, line, 13.5) for i, line in enumerate(lines)]
        y += height + 8
    rule = "a module imports from the layers below its own; modules of one layer do not import each other"
    parts.append(text(400, y + 14, rule, 12.5, colour=SOFT, style="italic"))
    return svg(800, y + 30, "The layers of the package", parts)


def wrapped(names, limit):
    """Names separated by dots, in lines of at most so many characters."""
    lines = [names[0]]
    for name in names[1:]:
        if len(lines[-1]) + len(name) + 5 <= limit:
            lines[-1] += f"  ·  {name}"
        else:
            lines.append(name)
    return lines


DRAWINGS = {"flow.svg": flow, "layers.svg": layers}

if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        (FIGURES / name).write_text(draw(), encoding="utf-8")
