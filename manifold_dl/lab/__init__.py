"""The lab, ``manifold-dl lab``: swap solvers, manifolds and regularizers in the browser, and watch what
happens.

From the bottom up: `settings.py` (all choices of the page as plain values), `address.py` (the same as a
link), `data.py` (signals), `parts.py` (choices to components), `job.py` (what one run needs), `watching.py`
(a problem and a line searcher that are observed), `run.py` (a run in its own thread), `compatibility.py`
(which choices go together, and why not), `own_code.py` (a regularizer typed by the user), `code.py` (the
Python that does the same), `numbers.py`, `figures/` (SVG), `missions.py`, and `session.py`, the state of one
page. Only `app.py`, the page, and `server.py` import marimo.
"""
