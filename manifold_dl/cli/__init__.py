"""The command line, ``manifold-dl``: one file per command, put together here.

A command imports what it needs when it runs, so that help and shell completion are there at once. What all
of them share is in `shared.py`: options, sentences instead of tracebacks, progress, files that are whole
or absent.
"""

import inspect
import os
import sys
from typing import Annotated

import typer

from manifold_dl.cli.demo import demo
from manifold_dl.cli.denoise import denoise
from manifold_dl.cli.encode import encode
from manifold_dl.cli.info import info
from manifold_dl.cli.learn import learn
from manifold_dl.cli.recover import recover
from manifold_dl.cli.reproduce import reproduce
from manifold_dl.cli.shared import PROGRAM, guarded, say

app = typer.Typer(
    name=PROGRAM,
    help="Dictionary learning by optimisation on manifolds: SimCO, K-SVD, MOD and beyond.",
    epilog="Begin with: manifold-dl demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for command in (demo, denoise, learn, encode, recover, reproduce, info):
    paragraphs = inspect.getdoc(command).split("\n\n")  # as long as the terminal is wide, not as the source
    app.command(help="\n\n".join(" ".join(lines.split()) for lines in paragraphs))(guarded(command))


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
):
    if version:
        from manifold_dl import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main():
    """What the installed script calls: 0 done, 1 failed, 2 bad input, 130 stopped by Ctrl-C."""
    # Our own threads share out the work. BLAS's would only compete with them for the processors: on two busy
    # cores K-SVD took 21 s with them and 2.3 s without. NumPy is not loaded yet, so this is in time.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        code = app(prog_name=PROGRAM, standalone_mode=False)
    except KeyboardInterrupt:
        code = 130
    except (typer.BadParameter.__mro__[2], typer.Abort) as error:  # ClickException, wherever Typer keeps it
        message = error.format_message() if hasattr(error, "format_message") else "stopped"
        context = getattr(error, "ctx", None)
        say(f"{message.rstrip('.')}; see {context.command_path if context else PROGRAM} --help.")
        code = 2
    if code == 130:
        sys.stdout.flush()
        os._exit(code)  # at once: an ordinary exit would wait for threads that finish what nobody wants
    sys.exit(code if isinstance(code, int) else 0)
