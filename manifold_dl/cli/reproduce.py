"""``manifold-dl reproduce``: the paper's figures and tables, and our own, measured and drawn."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from manifold_dl.cli.shared import PROGRAM, Force, Json, Quiet, Seed, Stopped, needs_images, print_json, say


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
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
):
    """Reproduce a figure or table of the paper, or one that goes past it.

    Writes NAME.csv, NAME.json, NAME.png and NAME.svg, and says which claims the numbers bear out. An
    interrupted run goes on where it stopped when the same command is given again.
    """
    from manifold_dl import experiments
    from manifold_dl.cli.bars import Bars
    from manifold_dl.experiments.study import redraw, run

    names = experiments.NAMES if name == "all" else (name,)
    studies = [experiments.find(one) for one in names]
    if trials is not None and name == "all":
        raise ValueError("--trials belongs to one experiment: name it, or leave the number to each.")
    settings = {study.name: study.parameters(quick=quick, trials=trials) for study in studies}
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder with --out.")
    if not plot_only:
        folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs or os.cpu_count() or 1
    results = []
    with Bars(quiet or as_json) as bars, needs_images():
        lines = {study.name: bars.bar(study.name.ljust(8), "waiting") for study in studies}
        for study in studies:
            bar = lines[study.name]
            arguments = {"parameters": settings[study.name], "seed": seed, "jobs": jobs, "force": force}
            try:
                if plot_only:
                    table = redraw(study, folder)
                else:
                    table = run(study, folder, progress=partial(bar.count, note=study.title), **arguments)
            except (KeyboardInterrupt, Stopped):
                say(f"stopped; what was measured is in {folder}, and the same command goes on from there.")
                raise typer.Exit(130) from None
            bar.finish(study.title)
            results.append((study, study.claims(table)))
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


def _names():
    from manifold_dl.experiments import NAMES

    return [*NAMES, "all"]


def _show(results, folder):
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("", "claim", "measured", "holds", show_lines=True)
    for study, claims in results:
        for claim in claims:
            verdict = "[green]yes" if claim.holds else "[bold red]no"
            table.add_row(study.name, claim.says, claim.measured, verdict)
    if table.row_count:
        console.print(table)
    console.print(f"\nTables and figures are in {folder.absolute()}:", highlight=False, soft_wrap=True)
    for study, _ in results:
        console.print(f"  {study.name}.png  {study.title}", highlight=False)
    console.print(f"[dim]{PROGRAM} reproduce NAME --plot-only draws them again.", highlight=False)
