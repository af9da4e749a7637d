"""``manifold-dl learn``: a dictionary from a matrix of signals."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from manifold_dl.cli import choices
from manifold_dl.cli.choices import UpdateChoice, coder_named
from manifold_dl.cli.errors import Failure
from manifold_dl.cli.options import (
    Atoms,
    Columns,
    Force,
    Iterations,
    Json,
    Missing,
    Quiet,
    Seed,
    Threads,
    input_file,
)
from manifold_dl.cli.outputs import partial_result_saved, report, require_still_absent, require_writable


def learn(
    data: Annotated[Path, input_file("DATA", "A .npy file with a matrix.")],
    atoms: Atoms,
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    sparsity: Annotated[
        int | None, typer.Option(min=1, help="Atoms per signal; needed unless there is --codes.")
    ] = None,
    columns: Columns = False,
    missing: Missing = None,
    iterations: Iterations = 50,
    coder: choices.CoderOption = "omp",
    codes: choices.CodesOption = None,
    update: choices.UpdateOption = "simco",
    solver: choices.SolverOption = None,
    line_searcher: choices.LineSearcherOption = None,
    mu: choices.MuOption = None,
    manifold: choices.ManifoldOption = None,
    regularizer: choices.RegularizerOption = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Signals in a mini-batch of the first passes, a multiple of 1024; 0 for none. By default "
            "4096 from 50,000 signals on.",
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn a dictionary from the signals in a .npy file.

    DATA is a matrix with a signal in every row, as in scikit-learn (or in every column: --columns). The
    result is read by encode, or in Python by manifold_dl.load(path): there, an atom is a column. With
    --missing nan, NaN in DATA marks missing entries. A file above 512 MB is not read into memory, and its
    result is stored without codes.
    """
    require_writable(out, force, (".npz",))
    from manifold_dl.cli.bars import Bars
    from manifold_dl.cli.signals import open_large, read_incomplete
    from manifold_dl.learning.learn import learn_dictionary
    from manifold_dl.learning.result import Reason

    sparse_coder = _coder(coder, sparsity, codes)
    rule = UpdateChoice(update, solver, line_searcher, mu, manifold, regularizer, codes).make()
    settings: dict[str, Any] = {
        "coder": sparse_coder,
        "update": rule,
        "max_iter": iterations,
        "rng": seed,
        "threads": threads,
        "minibatches": _minibatches(batch_size),
    }
    opened = open_large(data, columns, missing, threads)
    Y, settings["weights"] = opened or read_incomplete(data, columns, missing)
    begin = time.perf_counter()
    with Bars(quiet or as_json) as bars, partial_result_saved(out):
        result = learn_dictionary(Y, atoms, callbacks=[bars.bar(data.name)], **settings)
    if result.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - begin
    _save(result, out, force)
    facts = {
        "out": out,
        "sparsity": sparsity or _n_codes(result.codes) / Y.shape[1],
        **_facts(result, Y, settings["weights"]),
        "seconds": seconds,
    }
    report(facts, _sentence(facts), as_json=as_json, quiet=quiet)


def _coder(name: str, sparsity: int | None, codes: str | None) -> Any:
    """Return the coder of the loop; None where the update finds the codes by a penalty."""
    if codes is None and sparsity is None:
        raise ValueError("give --sparsity, atoms per signal, or a penalty such as --codes lasso:0.1.")
    if codes is None:
        return coder_named(name, sparsity or 1)
    if sparsity is not None or name != "omp":
        raise ValueError("--codes finds the codes by a penalty: leave out --sparsity and --coder.")
    return None


def _n_codes(codes: Any) -> int:
    """How many codes are not zero; those that are not in memory are computed block by block."""
    from manifold_dl.learning.distant_codes import LazyCodes

    return sum(block.nnz for block in codes.blocks()) if isinstance(codes, LazyCodes) else codes.nnz


def _minibatches(size: int | None) -> Any:
    """Return the argument of `learn_dictionary`."""
    from manifold_dl.learning.batching import MiniBatches

    return MiniBatches(size) if size else (None if size is None else False)


def _save(result: Any, out: Path, force: bool) -> None:
    from manifold_dl.learning import storage

    require_still_absent(out, force)
    try:
        storage.save(result, out)
    except OSError as error:
        raise Failure(f"{out} could not be written: {error.strerror or error}.") from None


def _facts(result: Any, Y: Any, weights: Any) -> dict[str, Any]:
    from manifold_dl.engines.blocked import BlockedSignals
    from manifold_dl.engines.units import times_square
    from manifold_dl.learning.signal_sums import LossScale, squared_error

    scale = LossScale.of(Y, weights)
    if isinstance(Y, BlockedSignals):  # the codes are not in memory, but their error is known
        error = times_square((1 - result.explained) * scale.energy, scale.exponent)
    else:
        error = squared_error(Y, result.dictionary, result.codes, weights=weights)
    return {
        "signals": Y.shape[1],
        "length": Y.shape[0],
        "atoms": result.dictionary.shape[1],
        "iterations": len(result.history),
        # Of the result as it is stored: in the last step of the history the codes may have had a ridge.
        "loss": error / scale.total_weight,
        "explained": result.explained,
        "reason": result.reason.name.lower(),
    }


def _sentence(facts: dict[str, Any]) -> str:
    return (
        f"{facts['out']}: {facts['atoms']} atoms of length {facts['length']} "
        f"from {facts['signals']} signals, "
        f"{facts['explained']:.1%} of their energy explained by {facts['sparsity']:.3g} atoms each; "
        f"{facts['seconds']:.1f} s."
    )
