"""``manifold-dl encode``: sparse codes of signals over a learned dictionary."""

import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manifold_dl.cli.choices import coder_named, names_of
from manifold_dl.cli.options import Columns, Force, Json, Missing, Quiet, Threads, input_file
from manifold_dl.cli.outputs import output_file, report, require_writable

if TYPE_CHECKING:
    import numpy as np

    from manifold_dl.cli.bars import Bar

BLOCK = 20_000  # signals between two updates of the progress


def encode(
    model: Annotated[Path, input_file("MODEL", "A .npz file from learn.")],
    data: Annotated[Path, input_file("DATA", "A .npy file with a matrix.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    coder: Annotated[
        str | None,
        typer.Option(
            help="The sparse coder, if not the one of learning: omp, forward-selection, ...",
            autocompletion=names_of("coders"),
        ),
    ] = None,
    sparsity: Annotated[
        int | None, typer.Option(min=1, help="Atoms per signal; by default as many as in learning.")
    ] = None,
    columns: Columns = False,
    missing: Missing = None,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Represent the signals in a .npy file by a few atoms each.

    MODEL comes from learn, and holds the coder it was learned with: that one is used, unless --coder names
    another. DATA has a signal in every row, and so have the codes (or in every column: --columns). Read them
    with scipy.sparse.load_npz. With --missing nan, NaN in DATA marks missing entries.
    """
    require_writable(out, force, (".npz",))
    import scipy.sparse

    from manifold_dl.cli.bars import Bars
    from manifold_dl.cli.signals import read_incomplete
    from manifold_dl.learning import storage

    learned = storage.load(model)
    D, (Y, W) = learned.dictionary, read_incomplete(data, columns, missing)
    if len(Y) != len(D):
        other = "" if len(Y.T) != len(D) else " Its transpose has: see --columns."
        raise ValueError(f"{data} has signals of length {len(Y)}, the atoms have length {len(D)}.{other}")
    chosen = choose_coder(model, learned, coder, sparsity)
    begin = time.perf_counter()
    with Bars(quiet or as_json) as bars:
        codes, error = _encode_blocks(chosen, Y, W, D, threads, bars.bar(data.name))
    with output_file(out, force) as file:
        scipy.sparse.save_npz(file, codes if columns else codes.T.tocsr())
    n, seconds = Y.shape[1], time.perf_counter() - begin
    facts = {"out": out, "signals": n, "atoms": D.shape[1], "coder": repr(chosen), "entries": int(codes.nnz)}
    sentence = (
        f"{out}: {n} signals coded by {chosen!r}, {codes.nnz / n:.3g} atoms each on average; {seconds:.1f} s."
    )
    report({**facts, "loss": error / n, "seconds": seconds}, sentence, as_json=as_json, quiet=quiet)


def choose_coder(model: Path, learned: Any, name: str | None, sparsity: int | None) -> Any:
    """Return the coder that is named, or else the one that the model was learned with.

    Parameters
    ----------
    model : Path
        The file of the model, for messages.
    learned : Result
        What is in the file.
    name : str, optional
        The coder of the option ``--coder``.
    sparsity : int, optional
        Atoms per signal of the option ``--sparsity``.

    Returns
    -------
    SparseCoder
    """
    import numpy as np

    from manifold_dl.components.settings import is_text, shown

    if name is not None and learned.codes is None and sparsity is None:
        raise ValueError(f"{model} was stored without codes: say how many atoms per signal with --sparsity.")
    if name is not None:
        used = [1] if learned.codes is None else np.diff(learned.codes.indptr)
        return coder_named(name, sparsity or max(1, int(np.max(used, initial=1))))
    stored = learned.settings.get("coder")
    if stored is None:
        raise ValueError(
            f"{model} does not say which coder it was learned with: name one, such as --coder omp."
        )
    if is_text(stored):
        raise ValueError(
            f"{model} was learned with a coder that has no name here, {shown(stored)}: name one with --coder."
        )
    coder: Any = learned.component("coder")
    if sparsity is None:
        return coder
    names = {field.name for field in fields(coder)} if is_dataclass(coder) else set()
    if "sparsity" not in names:
        raise ValueError(f"--sparsity {sparsity}: {coder!r}, the coder of {model}, has no such parameter.")
    changed: Any = replace(coder, sparsity=sparsity)
    return changed


def _encode_blocks(
    coder: Any, Y: "np.ndarray", W: "np.ndarray | None", D: "np.ndarray", threads: int | None, bar: "Bar"
) -> tuple[Any, float]:
    """Return the codes (sparse, d×n) and ‖Y − DX‖² over the entries with weight, block by block."""
    import numpy as np
    import scipy.sparse

    from manifold_dl.coders.calling import run_coder

    blocks, error = [], 0.0
    for first in range(0, Y.shape[1], BLOCK):
        signals = Y[:, first : first + BLOCK]
        weights = None if W is None else W[:, first : first + BLOCK]
        blocks.append(run_coder(coder, signals, D.astype(Y.dtype), threads=threads, weights=weights))
        squares = (signals - D @ blocks[-1]) ** 2
        error += float(np.sum(squares if weights is None else weights * squares))
        bar.count(first + signals.shape[1], Y.shape[1], "coding")
    return scipy.sparse.hstack(blocks, format="csc"), error
