"""Serve the page on 127.0.0.1, with a token in the address, and open it in the browser."""

import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

PORT = 2718
HOST = "127.0.0.1"
NO_CODE = "MANIFOLD_DL_LAB_NO_CODE"  # how the page, in the same process, reads --no-code
LONGEST = 120  # seconds that are waited for the kernels; with those on the disk it is less than one
_HEADERS = (b"host", b"origin")
CLOSED = 30  # seconds after a page is closed, or loaded anew, until its runs end
_HERE = Path(__file__).parent


def serve(
    *,
    port: int = PORT,
    query: str = "",
    allow_code: bool = True,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the page until Ctrl-C, which ends the process.

    Parameters
    ----------
    port : int
        Where to listen; if it is taken, any other that is free. 0 for a free one at once.
    query : str
        Settings to begin with, as in a shared address.
    allow_code : bool
        Whether the page executes a regularizer that its user types.
    open_browser : bool
        Whether to open the page.
    announce : callable
        Called with the address, once the page can be opened.
    """
    import uvicorn

    from manifold_dl.lab import widgets  # noqa: F401 - the page imports it, which would delay its opening

    os.environ[NO_CODE] = "" if allow_code else "1"
    token = secrets.token_urlsafe(16)
    listener = _listener(port)
    page = address(listener.getsockname()[1], token, query)
    server = uvicorn.Server(uvicorn.Config(make_app(token), log_level="error", lifespan="on"))
    warming = threading.Thread(target=warm_up, daemon=True, name="manifold-dl lab: warm-up")
    warming.start()
    threading.Thread(
        target=_when_started,
        args=(server, warming, page, open_browser, announce),
        daemon=True,
        name="manifold-dl lab: open",
    ).start()
    try:
        server.run(sockets=[listener])
    finally:
        if server.started and server.should_exit:  # Ctrl-C, not a failure to start
            _end_process()


def make_app(token: str) -> Any:
    """The web application: the page behind a token, with its script inside of it.

    Parameters
    ----------
    token : str
        Without it, in the address or in the cookie that the address sets, nothing is served. A request that
        names another host, or comes from the page of another one, is answered with 403 even with it.

    Returns
    -------
    ASGI application
    """
    import marimo

    builder = marimo.create_asgi_app(token=token, quiet=True, html_head=head(), session_ttl=CLOSED)
    return _own_pages_only(builder.with_app(path="/", root=str(_HERE / "app.py")).build())


def _own_pages_only(app: Any) -> Any:
    """The application, refusing what pages of other servers send: browsers attach the cookie to that, too.

    A host that is not this machine is a name that somebody made point to it (DNS rebinding). Cookies do not
    tell ports apart, so a page of another port has to be refused by its origin.
    """

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or _is_own(scope):
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # the connection; closed before it is accepted, which is answered with 403
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            text = "The lab answers its own page only, at the address that it printed."
            await send({"type": "http.response.body", "body": text.encode()})

    return guarded


def _is_own(scope: Any) -> bool:
    """Whether a request names this server as its host and, if it names an origin, as its origin."""
    hosts, origins = ([value for name, value in scope["headers"] if name == wanted] for wanted in _HEADERS)
    port = scope["server"][1]
    own = {(name if port == 80 else f"{name}:{port}").encode() for name in (HOST, "localhost")}
    return len(hosts) == 1 and hosts[0] in own and all(o == b"http://" + hosts[0] for o in origins)


def head() -> str:
    """What is added to the head of the page, besides the style sheet that `app.py` names."""
    script = (_HERE / "static" / "lab.js").read_text(encoding="utf-8")
    return f"<script>{script}</script>"


def address(port: int, token: str, query: str = "") -> str:
    """The address of the page.

    Examples
    --------
    >>> address(2718, "secret", "m=3")
    'http://127.0.0.1:2718/?access_token=secret&m=3'
    """
    return f"http://{HOST}:{port}/?access_token={token}" + (f"&{query}" if query else "")


def warm_up() -> None:
    """Run a small problem, so that kernels are compiled, or read from disk, before the page is opened."""
    from manifold_dl.lab.figures import atoms_figure, search_figure
    from manifold_dl.lab.session import Session
    from manifold_dl.lab.settings import Settings

    session, small = Session(), Settings(m=4, d=6, n=20, sparsity=2, iterations=2)
    one_at_a_time = replace(small, schedule="OneAtATime", optimizer="LeadingSingularVector")
    optimizers = ("SteepestDescent", "ConjugateGradient", "TrustRegions")
    smooth = (replace(small, optimizer=optimizer) for optimizer in optimizers)
    for settings in (replace(small, problem="lasso_problem"), one_at_a_time, *smooth):
        session.run(settings)
        if session.current is None or not session.current.wait(60).is_over:
            continue
        session.measure()
        found = session.search(1)
        if found is not None:  # what the first step shows
            search_figure(*found)
    atoms_figure(session.runs[-1].dictionary)
    session.reasons(Settings())


def _end_process() -> None:
    """End at once: Python would wait for marimo's thread of every page, which waits for messages."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.bind((HOST, 0))
    return listener


def _when_started(
    server: Any, warming: threading.Thread, page: str, open_browser: bool, announce: Callable[[str], None]
) -> None:
    pause = threading.Event()
    while not (server.started or server.should_exit):
        pause.wait(0.05)
    warming.join(LONGEST)  # before, the page would be empty while it waits for the compiler
    announce(page)
    if open_browser:
        webbrowser.open(page)
