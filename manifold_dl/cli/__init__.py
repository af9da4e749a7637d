"""The command line, ``manifold-dl``: one file per command, combined here.

A command imports what it needs when it runs, so that help and shell completion start fast. What commands have
in common is in `options.py` (options), `choices.py` (components by name), `errors.py` (sentences instead of
tracebacks), `outputs.py` (files and JSON) and `bars.py` (progress).
"""

import inspect
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from manifold_dl.cli.demo import demo
from manifold_dl.cli.denoise import denoise
from manifold_dl.cli.encode import encode
from manifold_dl.cli.errors import PROGRAM, guarded, print_message
from manifold_dl.cli.info import info
from manifold_dl.cli.inpaint import inpaint
from manifold_dl.cli.lab import lab
from manifold_dl.cli.learn import learn
from manifold_dl.cli.recover import recover
from manifold_dl.cli.reproduce import reproduce
from manifold_dl.cli.warm_up import warm_up

# The base classes of all errors of the command line's syntax. Versions of Typer export them under different
# names, but all of them export BadParameter.
USAGE_ERROR: type[Any]
CLICK_ERROR: type[Any]
USAGE_ERROR, CLICK_ERROR = typer.BadParameter.__mro__[1:3]

app = typer.Typer(
    name=PROGRAM,
    help="Dictionary learning by optimisation on manifolds: SimCO, K-SVD, MOD and beyond.",
    epilog="Begin with: manifold-dl demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for command in (demo, lab, denoise, inpaint, learn, encode, recover, reproduce, warm_up, info):
    # Typer keeps the line breaks of the source; without them the help fills the width of the terminal.
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    app.command(help="\n\n".join(" ".join(lines.split()) for lines in paragraphs))(guarded(command))


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    # No docstring: Typer would print it instead of the help given above.
    if version:
        from manifold_dl import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Run the installed script. Exit codes: 0 done, 1 failed, 2 bad input, 130 stopped by Ctrl-C."""
    # Our threads divide the work; those of BLAS would compete with them for the processors: on two busy
    # cores K-SVD took 21 s with them and 2.3 s without. NumPy is not imported yet, so the variables count.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        code = app(prog_name=PROGRAM, standalone_mode=False)
    except KeyboardInterrupt:
        code = 130
    except typer.Abort:
        print_message("stopped.")
        code = 2
    except CLICK_ERROR as error:
        _print_usage(error)
        code = 2
    if code == 130:
        sys.stdout.flush()
        os._exit(code)  # at once: an ordinary exit would wait for the threads to finish their work
    sys.exit(code if isinstance(code, int) else 0)


def _print_usage(error: Any) -> None:
    """Print the sentence of a syntax error, and which help to read."""
    context = error.ctx if isinstance(error, USAGE_ERROR) else None
    print_message(
        f"{error.format_message().rstrip('.')}; see {context.command_path if context else PROGRAM} --help."
    )
