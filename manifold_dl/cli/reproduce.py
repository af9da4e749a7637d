"""``manifold-dl reproduce``: the paper's figures and tables, and our own, measured and drawn."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from manifold_dl.cli.shared import (
    PROGRAM,
    Failure,
    Json,
    Quiet,
    Seed,
    Stopped,
    needs_images,
    print_json,
    say,
)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="fig1, fig2a, fig2b, fig3, fig4, table1, theorem1, recovery, solvers, or all of them.",
            autocompletion=lambda: _names(),
        ),
    ],
    trials: Annotated[
        int | None, typer.Option(min=1, help="Random draws a point; fewer are quicker, more are surer.")
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="The folder for tables and figures; reproduction by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: minutes instead of hours.")] = False,
    plot_only: Annotated[bool, typer.Option("--plot-only", help="Draw again from the tables alone.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one a processor by default.")] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            "-f",
            help="Begin anew where there are results or unfinished ones of other parameters already.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
):
    """Reproduce a figure or table of the paper, or one that goes past it.

    Writes NAME.csv, NAME.json, NAME.png and NAME.svg, and says which claims the numbers bear out. An
    interrupted run goes on where it stopped when the same command is given again.
    """
    import matplotlib

    from manifold_dl import experiments
    from manifold_dl.cli.bars import Bars
    from manifold_dl.experiments.study import redraw, run

    matplotlib.use("Agg")  # figures go to files; no window system need be loaded
    names = experiments.NAMES if name == "all" else (name,)
    studies = [experiments.find(one) for one in names]
    if trials is not None and name == "all":
        raise ValueError("--trials belongs to one experiment: name it, or leave the number to each.")
    settings = {study.name: study.parameters(quick=quick, trials=trials) for study in studies}
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder with --out.")
    absent = []
    if plot_only and name == "all":
        studies, absent = _with_tables(studies, folder)
    elif name == "all":
        studies = _with_pictures(studies, settings)
    if not plot_only:
        folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs or os.cpu_count() or 1
    results = []
    try:
        with Bars(quiet or as_json) as bars, needs_images():
            lines = {study.name: bars.bar(study.name.ljust(8), "waiting") for study in studies}
            for study in studies:
                bar = lines[study.name]
                arguments = {"parameters": settings[study.name], "seed": seed, "jobs": jobs, "force": force}
                if plot_only:
                    table = redraw(study, folder)
                else:
                    table = run(study, folder, progress=partial(bar.count, note=study.title), **arguments)
                bar.finish(study.title)
                results.append((study, study.claims(table)))
    except (KeyboardInterrupt, Stopped):
        say(f"stopped; what was measured is in {folder}, and {_how_to_go_on(studies, results, force)}.")
        raise typer.Exit(130) from None
    if as_json:
        print_json(
            [
                {
                    "experiment": study.name,
                    "figure": (folder / f"{study.name}.png").absolute(),
                    "claims": [claim._asdict() for claim in claims],
                }
                for study, claims in results
            ]
        )
    elif not quiet:
        _show(results, folder)
    if absent:
        raise Failure(f"there are no tables in {folder} to draw {', '.join(absent)} from.")


def _names():
    from manifold_dl.experiments import NAMES

    return [*NAMES, "all"]


def _with_tables(studies, folder):
    """The studies that can be drawn, and the names of the others."""
    from manifold_dl.experiments.study import sources

    drawable = [study for study in studies if all(path.exists() for path in sources(study, folder))]
    return drawable, [study.name for study in studies if study not in drawable]


def _with_pictures(studies, settings):
    """The studies that can be measured: without scikit-image, those that need no picture."""
    possible = []
    for study in studies:
        try:
            study.parts(settings[study.name])
        except ModuleNotFoundError as error:
            say(f"{study.name} is left out: {error}")
        else:
            possible.append(study)
    return possible


def _how_to_go_on(studies, results, force):
    """--force would begin the finished ones anew."""
    if not (force and results):
        return "the same command goes on from there"
    left = [study.name for study in studies[len(results) :]]
    return f"--force would begin what is finished anew: name one by one what is left, {', '.join(left)}"


def _show(results, folder):
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
