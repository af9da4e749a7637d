"""What is shown beside the controls, as HTML: status, figures, numbers, runs, code, missions.

`app.py` fills these cards from a `Session`. What marimo draws, such as a button, comes in as an object whose
format is HTML.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from manifold_dl.lab.figures.atoms import MOST
from manifold_dl.lab.figures.axes import element, short, tag
from manifold_dl.lab.figures.convergence import COLOURS
from manifold_dl.lab.missions import Mission
from manifold_dl.lab.numbers import Numbers
from manifold_dl.lab.page import heading
from manifold_dl.lab.run import Run, State

SPHERE = "● the directions of the atoms; × the true ones and their opposites"


def status(run: Run | None, message: str) -> str:
    """What the run is doing, how far it is, and what is wrong."""
    if message and (run is None or run.state is not State.RUNNING):  # beside its control it stands anyway
        return tag("div", message, class_="mdl-status refused", role="status")
    if run is None:
        return tag("div", "Ready.", class_="mdl-status", role="status", data_state="ready")
    fraction, left = run.progress()
    count = max(len(run.iterates) - 1, 0)
    words = {
        State.RUNNING: f"running for {_duration(run.seconds)}: step {count}, {run.evaluations:,} evaluations",
        State.PAUSED: f"waiting after step {count}: Step ▸ goes on by one, Run to the end",
        State.FINISHED: f"finished after {count} steps",
        State.STOPPED: f"stopped after {count} steps; what there is stays",
        State.FAILED: f"failed after {count} steps: {run.message}",
    }[run.state]
    if run.is_stopping:
        words = "stopping, as soon as what is computed just now is done"
    elif run.state is State.RUNNING and math.isfinite(left):
        words += f", at most {_duration(left)} left"
    bar = element("div", tag("i", style=f"width: {100 * fraction:.0f}%"), class_="mdl-progress")
    return element("div", tag("span", words) + bar, class_=f"mdl-status {run.state.value}", role="status",
                   data_state=run.state.value, data_steps=count)  # fmt: skip


def numbers_table(numbers: Numbers | None, has_truth: bool) -> str:
    """The numbers of an iterate as a row of tiles."""
    if numbers is None:
        return tag("p", "The numbers of a run will stand here.", class_="mdl-hint")
    found = f"{numbers.found} of {numbers.atoms}" if numbers.found >= 0 and has_truth else "–"
    tiles = {
        "objective": short(numbers.value),
        "f / ‖Y‖²": short(numbers.relative),
        "error ‖Y−DX‖/‖Y‖": "–" if math.isnan(numbers.error) else f"{numbers.error:.2%}",
        "‖gradient‖": short(numbers.gradient_norm),
        "evaluations": f"{numbers.evaluations:,}",
        "seconds": f"{numbers.seconds:.3f}",
        "κ(D)": short(numbers.kappa),
        "smallest σ": ", ".join(f"{value:.2g}" for value in numbers.smallest) or "–",
        "coherence": "–" if math.isnan(numbers.coherence) else f"{numbers.coherence:.3f}",
        "atoms found": found,
    }
    cells = "".join(
        element("div", tag("span", name) + tag("b", value, data_number=name), class_="mdl-tile")
        for name, value in tiles.items()
    )
    return element("div", cells, class_="mdl-tiles", data_value=repr(numbers.value), data_step=numbers.index)


def legend_entry(name: str, number: int, is_last: bool, button: str) -> str:
    """One run of the legend, with the button that deletes it."""
    swatch = tag("i", class_=f"swatch run-{number % COLOURS} {'last' if is_last else 'pale'}")
    return element("li", swatch + tag("span", name) + button, class_="mdl-run")


def mission_card(mission: Mission, solved: str | None, button: str, allowed: bool) -> str:
    """One mission: what to do, a hint, a button that sets it up, and the tick."""
    mark = tag("span", "✓" if solved else "○", class_="tick-mark")
    parts = [tag("p", mission.task)]
    if not allowed:
        parts.append(tag("p", "Not with --no-code.", class_="mdl-hint"))
    if solved:
        parts.append(tag("p", solved, class_="mdl-solved", role="status"))
    hint = element("details", tag("summary", "hint") + tag("p", mission.hint), class_="mdl-reasons")
    title = element("div", mark + tag("span", mission.title), class_="mdl-h4", role="heading", aria_level=4)
    look = "mdl-mission done" if solved else "mdl-mission"
    return element("article", title + "".join(parts) + hint + button, class_=look, data_mission=mission.key)


def verdict(text: str, is_right: bool) -> str:
    """The verdict on a regularizer."""
    return tag("div", text, class_="mdl-verdict right" if is_right else "mdl-verdict wrong", role="status")


def code_block(text: str) -> str:
    """The Python, with a button that copies it."""
    copy = element("mdl-copy", data_text=text, data_label="Copy the code")
    return element("div", copy + element("pre", tag("code", text)), class_="mdl-code")


def address_line(query: str) -> str:
    """Puts the settings into the address of the page, and copies it."""
    sync = element("mdl-address", data_query=query)
    return sync + element("mdl-copy", data_address="1", data_label="Copy the link to these settings")


def title() -> str:
    """The head of the page."""
    what = "Swap solvers, manifolds and regularizers, and watch what happens. All of it runs on this machine."
    return element("header", heading(1, "The lab") + tag("p", what), class_="mdl-head")


def bar(buttons: Sequence[object], status: str) -> str:
    """The buttons, and what the run is doing."""
    inside = "".join(f"{button}" for button in buttons) + status
    return element("div", inside, class_="mdl-card mdl-bar")


def legend(names: Sequence[str], numbers: Sequence[int], buttons: Sequence[object]) -> str:
    """All runs, the last one first; a run that began just now has no button yet."""
    entries = []
    for k in reversed(range(len(names))):
        button = f"{buttons[k]}" if k < len(buttons) else ""
        entries.append(legend_entry(names[k], numbers[k], k == len(names) - 1, button))
    return element("ul", "".join(entries), class_="mdl-runs")


def objective_card(figure: str, switch: object, legend: str, numbers: str) -> str:
    """The objective, the runs and the numbers."""
    head = element("div", heading(3, "The objective, against") + f"{switch}", class_="mdl-row")
    return element("div", head + figure + legend + numbers, class_="mdl-card")


def search_card(figure: str, step: object, last: int, is_running: bool) -> str:
    """φ of the chosen step, and the slider that chooses it."""
    slider = element("div", f"{step}", class_="mdl-step") if step is not None else ""
    if not figure:
        text = "φ(t) of a step, with the probes of its line search, will stand here."
        if is_running:
            text = "φ(t) of any step will stand here as soon as the run waits or ends."
        elif last > 0:
            text = "No step along a curve led to this point: a new set of atoms or a new μ began here."
        figure = tag("p", text, class_="mdl-hint")
    return heading(3, "φ along the chosen step") + slider + figure


def atoms_card(figure: str, text: str, sphere: bool = False, atoms: int = 0) -> str:
    """The atoms, of which figures show the first ones only."""
    name = "The paths of the atoms: drag the sphere" if sphere else "The atoms"
    if atoms > MOST and not sphere:
        name += f", the first {MOST} of {atoms}"
    body = figure or tag("p", "The atoms will stand here, once these settings can be run.", class_="mdl-hint")
    return heading(3, name) + body + (tag("p", SPHERE, class_="mdl-hint") if sphere else "") + text


def atom_numbers(dictionary: object) -> str:
    """The entries of the atom, where there is only one: a start orthogonal to it is found by hand."""
    atoms = np.asarray(dictionary).T
    if len(atoms) > 1:
        return ""
    numbers = " ".join(f"{x:.10f}" for x in atoms[0])
    return element("p", "The atom: " + tag("span", numbers, class_="mdl-atom"), class_="mdl-hint")


def two(left: str, right: str, step: int) -> str:
    """Two cards side by side, which show a step."""
    cards = element("div", left, class_="mdl-card") + element("div", right, class_="mdl-card")
    return element("div", cards, class_="mdl-figures", data_step=step)


def own_card(editor: object, verdict: str, figure: str, printed: str = "") -> str:
    """The text box, the verdict, what the text printed, and the remainder."""
    if editor is None:
        return element("div", heading(3, "Your own regularizer") + verdict, class_="mdl-card")
    warning = "It is executed as you, on your machine, and from this page only."
    hint = "np is autograd’s NumPy. Choose “own” among the regularizers to use it in a run."
    hints = "".join(tag("p", text, class_="mdl-hint") for text in (warning, hint))
    left = element("div", f"{editor}" + hints)
    said = tag("p", "It printed:", class_="mdl-hint") + tag("pre", printed)
    output = element("div", said, class_="mdl-code")
    right = element("div", verdict + (output if printed else "") + figure)
    inside = heading(3, "Your own regularizer") + element("div", left + right, class_="mdl-own")
    return element("div", inside, class_="mdl-card")


def code_card(text: str, query: str) -> str:
    """The code, and the link."""
    body = code_block(text) if text else tag("p", "These settings cannot be run.", class_="mdl-hint")
    return element("div", heading(3, "The same in Python") + body + address_line(query), class_="mdl-card")


def missions_card(
    missions: Sequence[Mission], solved: Mapping[str, str], buttons: Mapping[str, object], allow_code: bool
) -> str:
    """All missions."""
    cards = [
        mission_card(one, solved.get(one.key), f"{buttons[one.key]}", allow_code or one.key != "gradient")
        for one in missions
    ]
    head = heading(3, f"Missions: {len(solved)} of {len(missions)}")
    return element("div", head + element("div", "".join(cards), class_="mdl-missions"), class_="mdl-card")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
