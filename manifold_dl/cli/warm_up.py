"""``manifold-dl warm-up``: compile all kernels now, so that later runs read them from the disk."""

import time

from manifold_dl.cli.errors import Failure
from manifold_dl.cli.options import Json, Quiet
from manifold_dl.cli.outputs import report


def warm_up(quiet: Quiet = False, as_json: Json = False) -> None:
    """Compile all kernels now, so that no later run has to: for containers and classrooms.

    Kernels that are compiled already are not compiled again. The folder that is printed is the cache; with
    NUMBA_CACHE_DIR in the environment it is the folder named there.
    """
    from manifold_dl.cli.bars import Bars
    from manifold_dl.cli.compilation import cache_folder, counting_compilations, kernels, runs

    if not kernels():
        raise Failure("Numba is not installed: there is nothing to compile, and plain NumPy is used.")
    begin = time.perf_counter()
    with Bars(quiet or as_json) as bars, counting_compilations() as compiled:
        bar = bars.bar("compiling", "importing")
        todo = runs()
        for number, (name, run) in enumerate(todo.items()):
            bar.count(number, len(todo), name)
            run()
    seconds, folder = time.perf_counter() - begin, cache_folder()
    facts = {"cache": folder, "compiled": len(compiled), "runs": len(todo), "seconds": seconds}
    sentence = f"{len(compiled)} functions compiled in {seconds:.0f} s; they are stored in {folder}."
    if not compiled:
        sentence = f"Everything was compiled already ({seconds:.0f} s); it is stored in {folder}."
    report(facts, sentence, as_json=as_json, quiet=quiet)
