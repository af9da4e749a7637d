"""``manifold-dl lab``: solvers, manifolds and regularizers to swap in the browser."""

import contextlib
from typing import Annotated

import typer

from manifold_dl.cli.errors import Failure, Stopped, print_message
from manifold_dl.cli.options import Quiet


def lab(
    shared: Annotated[
        str,
        typer.Argument(metavar="[ADDRESS]", help="A shared address, or its part after the question mark."),
    ] = "",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; if it is taken, any other port.")
    ] = 2718,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
    no_code: Annotated[
        bool, typer.Option("--no-code", help="Execute no regularizer that is typed into the page.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Swap solvers, manifolds and regularizers in the browser, and watch what happens.

    The page is served on this machine only, to those who have its address; it loads nothing from the network.
    """
    try:
        import marimo  # noqa: F401 - whether it is installed
        import uvicorn  # noqa: F401 - the same
    except ModuleNotFoundError:
        raise Failure('the lab needs marimo: pip install "manifold-dl[lab]".') from None
    from manifold_dl.lab.address import from_query, to_query
    from manifold_dl.lab.server import serve

    settings, messages = from_query(shared)
    for message in messages.values():
        print_message(message)

    def announce(address: str) -> None:
        if no_browser or not quiet:
            print(f"The lab: {address}\nCtrl-C ends it.", flush=True)

    with contextlib.suppress(KeyboardInterrupt, Stopped):  # Ctrl-C is how it ends
        serve(
            port=port,
            query=to_query(settings),
            allow_code=not no_code,
            open_browser=not no_browser,
            announce=announce,
        )
