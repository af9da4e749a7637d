"""The options and arguments that several commands have: types for the signatures that Typer reads."""

from typing import Annotated, Any

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all processors by default.")]
Atoms = Annotated[int, typer.Option(min=1, help="Atoms to learn.")]
Iterations = Annotated[int, typer.Option(min=1, help="Iterations of coding and update.")]
Columns = Annotated[
    bool, typer.Option("--columns", help="The file has a signal in every column, not in every row.")
]

Missing = Annotated[
    str | None,
    typer.Option(metavar="nan", help="What marks missing entries: nan. By default it is refused."),
]


def input_file(name: str, text: str) -> Any:
    """Return an argument that names a file to read.

    Parameters
    ----------
    name : str
        The name in the help.
    text : str
        What the file holds, for the help.

    Returns
    -------
    typer.Argument
        Typer refuses a file that does not exist or cannot be read.
    """
    return typer.Argument(metavar=name, help=text, exists=True, dir_okay=False, readable=True)
