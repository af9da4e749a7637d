"""The machinery of `benchmarks/peers.py`: problems, one process per library, tasks, results and the page.

`problems.py` says what an adapter is given; `../adapters` has one file per library; `tasks/` says what is
measured; `worker.py` runs in the process of a library, `processes.py` talks to it; `results.py` reads and
writes JSON lines, `goals.py` and `page.py` make the tables of docs/benchmarks.md.
"""
