"""``manifold-dl learn``: a dictionary from a matrix of signals."""

import time
from pathlib import Path
from typing import Annotated

import typer

from manifold_dl.cli.choices import (
    CoderOption,
    LineSearcherOption,
    ManifoldOption,
    MuOption,
    RegularizerOption,
    SolverOption,
    UpdateChoice,
    UpdateOption,
    coder_named,
)
from manifold_dl.cli.shared import (
    Failure,
    Force,
    Json,
    Quiet,
    Seed,
    Threads,
    input_file,
    partial_result_saved,
    print_json,
    require_free,
)

Columns = Annotated[
    bool, typer.Option("--columns", help="The file has a signal in every column, not in every row.")
]


def learn(
    data: Annotated[Path, input_file("DATA", "A .npy file with a matrix.")],
    atoms: Annotated[int, typer.Option(min=1, help="Atoms to learn.")],
    sparsity: Annotated[int, typer.Option(min=1, help="Atoms in a signal.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    columns: Columns = False,
    iterations: Annotated[int, typer.Option(min=1, help="Rounds of coding and updating.")] = 50,
    coder: CoderOption = "omp",
    update: UpdateOption = "simco",
    solver: SolverOption = None,
    line_searcher: LineSearcherOption = None,
    mu: MuOption = None,
    manifold: ManifoldOption = None,
    regularizer: RegularizerOption = None,
    seed: Seed = 0,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
):
    """Learn a dictionary from the signals in a .npy file.

    DATA is a matrix with a signal in every row, as in scikit-learn (or in every column: --columns). The
    result is read by encode, or in Python by manifold_dl.load(path): there, an atom is a column.
    """
    require_free(out, force, (".npz",))
    from manifold_dl.cli.bars import Bars
    from manifold_dl.cli.signals import read_signals
    from manifold_dl.learning import storage
    from manifold_dl.learning.learn import learn_dictionary
    from manifold_dl.learning.result import Reason
    from manifold_dl.learning.signal_sums import squared_error

    sparse_coder = coder_named(coder, sparsity)
    rule = UpdateChoice(update, solver, line_searcher, mu, manifold, regularizer).make()
    Y = read_signals(data, columns)
    begin = time.perf_counter()
    with Bars(quiet or as_json) as bars, partial_result_saved(out):
        result = learn_dictionary(
            Y,
            atoms,
            coder=sparse_coder,
            update=rule,
            max_iter=iterations,
            rng=seed,
            threads=threads,
            callbacks=[bars.bar(data.name)],
        )
    if result.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - begin
    if out.exists() and not force:
        raise ValueError(f"{out} has come into being meanwhile; --force overwrites it.")
    try:
        storage.save(result, out)
    except OSError as error:
        raise Failure(f"{out} could not be written: {error.strerror or error}.") from None
    facts = {
        "out": out,
        "signals": Y.shape[1],
        "length": Y.shape[0],
        "atoms": atoms,
        "sparsity": sparsity,
        "iterations": len(result.history),
        # Of what was written: the last step of the history may still have had a ridge on the codes.
        "loss": squared_error(Y, result.dictionary, result.codes) / Y.shape[1],
        "explained": result.explained,
        "reason": result.reason.name.lower(),
        "seconds": seconds,
    }
    if as_json:
        print_json(facts)
    elif not quiet:
        print(
            f"{out}: {atoms} atoms of length {Y.shape[0]} from {Y.shape[1]} signals, "
            f"{result.explained:.1%} of their energy explained by {sparsity} atoms each; {seconds:.1f} s."
        )
