"""``manifold-dl reproduce``: the paper's figures and tables, and our own, measured and drawn."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manifold_dl.cli.errors import PROGRAM, Failure, Stopped, needs_images, print_message
from manifold_dl.cli.options import Json, Quiet, Seed
from manifold_dl.cli.outputs import report

if TYPE_CHECKING:
    from manifold_dl.experiments.study import Claim, Study

    Checked = list[tuple[Study, list[Claim]]]


def _names() -> list[str]:
    """Return the names that the shell completes."""
    from manifold_dl.experiments import NAMES

    return [*NAMES, "all"]


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="fig1, fig2a, fig2b, fig3, fig4, table1, theorem1, recovery, solvers, or all of them.",
        autocompletion=_names,
    ),
]
Out = Annotated[Path | None, typer.Option(help="The folder for tables and figures; reproduction by default.")]
Trials = Annotated[
    int | None, typer.Option(min=1, help="Random draws per point; fewer are faster, more are more accurate.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Small sizes: minutes instead of hours.")]
PlotOnly = Annotated[bool, typer.Option("--plot-only", help="Draw again from the tables alone.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; one per processor by default.")]
StartAgain = Annotated[
    bool,
    typer.Option("--force", "-f", help="Start again where there are results of other parameters already."),
]


def reproduce(
    name: Name,
    trials: Trials = None,
    seed: Seed = 0,
    out: Out = None,
    quick: Quick = False,
    plot_only: PlotOnly = False,
    jobs: Jobs = None,
    force: StartAgain = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce a figure or table of the paper, or one of our own.

    Writes NAME.csv, NAME.json, NAME.png and NAME.svg, and prints which claims the numbers support. The same
    command continues an interrupted run.
    """
    import matplotlib

    from manifold_dl import experiments

    matplotlib.use("Agg")  # figures go to files; no window system is needed
    names = experiments.NAMES if name == "all" else (name,)
    studies = [experiments.find(one) for one in names]
    if trials is not None and name == "all":
        raise ValueError("--trials belongs to one experiment: name it, or leave --trials out.")
    settings = {study.name: study.parameters(quick=quick, trials=trials) for study in studies}
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder with --out.")
    absent: list[str] = []
    if plot_only and name == "all":
        studies, absent = _with_tables(studies, folder)
    elif name == "all":
        studies = _measurable(studies, settings)
    if not plot_only:
        folder.mkdir(parents=True, exist_ok=True)
    options = {"seed": seed, "jobs": jobs or os.cpu_count() or 1, "force": force}
    run_options = (
        None if plot_only else {name: {"parameters": settings[name], **options} for name in settings}
    )
    results = _run(studies, folder, run_options, hide_bars=quiet or as_json)
    facts = [_facts(study, claims, folder) for study, claims in results]
    report(facts, lambda: _show(results, folder), as_json=as_json, quiet=quiet)
    if absent:
        raise Failure(f"there are no tables in {folder} to draw {', '.join(absent)} from.")


def _with_tables(studies: "list[Study]", folder: Path) -> "tuple[list[Study], list[str]]":
    """Return the studies that can be drawn, and the names of the others."""
    from manifold_dl.experiments.running import sources

    drawable = [study for study in studies if all(path.exists() for path in sources(study, folder))]
    return drawable, [study.name for study in studies if study not in drawable]


def _measurable(studies: "list[Study]", settings: dict[str, dict[str, Any]]) -> "list[Study]":
    """Return the studies that can be measured: without scikit-image, those that need no picture."""
    possible = []
    for study in studies:
        try:
            study.parts(settings[study.name])
        except ModuleNotFoundError as error:
            print_message(f"{study.name} is left out: {error}")
        else:
            possible.append(study)
    return possible


def _run(
    studies: "list[Study]", folder: Path, options: dict[str, dict[str, Any]] | None, hide_bars: bool
) -> "Checked":
    """Run the studies with their options, or only draw them if there are none, and check their claims."""
    from manifold_dl.cli.bars import Bars
    from manifold_dl.experiments.running import redraw, run

    results: Checked = []
    try:
        with Bars(hide_bars) as bars, needs_images():
            lines = {study.name: bars.bar(study.name.ljust(8), "waiting") for study in studies}
            for study in studies:
                bar = lines[study.name]
                if options is None:
                    table = redraw(study, folder)
                else:
                    progress = partial(bar.count, note=study.title)
                    table = run(study, folder, progress=progress, **options[study.name])
                bar.finish(study.title)
                results.append((study, study.claims(table)))
    except (KeyboardInterrupt, Stopped):
        forced = options is not None and any(option["force"] for option in options.values())
        print_message(
            f"stopped; the measurements so far are in {folder}, and {_advice(studies, results, forced)}."
        )
        raise typer.Exit(130) from None
    return results


def _advice(studies: "list[Study]", results: "Checked", force: bool) -> str:
    """Return how to continue an interrupted command: with --force, finished studies would start again."""
    if not (force and results):
        return "the same command continues from there"
    left = [study.name for study in studies[len(results) :]]
    return f"--force would repeat the finished ones: name one by one what is left, {', '.join(left)}"


def _facts(study: "Study", claims: "list[Claim]", folder: Path) -> dict[str, Any]:
    figure = (folder / f"{study.name}.png").absolute()
    return {"experiment": study.name, "figure": figure, "claims": [claim._asdict() for claim in claims]}


def _show(results: "Checked", folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(markup=False, highlight=False)  # a folder may be called [bold]
    table = Table("", "claim", "measured", "holds", show_lines=True)
    for study, claims in results:
        for claim in claims:
            verdict = Text("yes", "green") if claim.holds else Text("no", "bold red")
            table.add_row(study.name, claim.says, claim.measured, verdict)
    if table.row_count:
        console.print(table)
    if results:
        console.print(f"\nTables and figures are in {folder.absolute()}:", soft_wrap=True)
        for study, _ in results:
            console.print(f"  {study.name}.png  {study.title}")
        console.print(f"{PROGRAM} reproduce NAME --plot-only draws them again.", style="dim")
