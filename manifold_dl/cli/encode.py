"""``manifold-dl encode``: sparse codes of signals over a learned dictionary."""

import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from manifold_dl.cli.choices import coder_named, names_of
from manifold_dl.cli.learn import Columns
from manifold_dl.cli.shared import (
    Force,
    Json,
    Quiet,
    Threads,
    input_file,
    print_json,
    require_free,
    whole_file,
)

AT_ONCE = 20_000  # signals between two looks at the clock


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
        int | None, typer.Option(min=1, help="Atoms in a signal; by default as many as in learning.")
    ] = None,
    columns: Columns = False,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
):
    """Represent the signals in a .npy file by a few atoms each.

    MODEL comes from learn, and holds the coder it was learned with: that one is used, unless --coder names
    another. DATA has a signal in every row, and so have the codes (or in every column: --columns). Read them
    with scipy.sparse.load_npz.
    """
    require_free(out, force, (".npz",))
    import numpy as np
    import scipy.sparse

    from manifold_dl.cli.bars import Bars
    from manifold_dl.cli.signals import read_signals
    from manifold_dl.coders.calling import run_coder
    from manifold_dl.learning import storage

    learned = storage.load(model)
    D, Y = learned.dictionary, read_signals(data, columns)
    if len(Y) != len(D):
        other = "" if len(Y.T) != len(D) else " Its transpose would: see --columns."
        raise ValueError(f"{data} has signals of length {len(Y)}, the atoms have length {len(D)}.{other}")
    chosen = choose_coder(model, learned, coder, sparsity)
    parts, error, begin = [], 0.0, time.perf_counter()
    with Bars(quiet or as_json) as bars:
        bar = bars.bar(data.name)
        for first in range(0, Y.shape[1], AT_ONCE):
            some = Y[:, first : first + AT_ONCE]
            parts.append(run_coder(chosen, some, D.astype(Y.dtype), threads=threads))
            error += float(np.sum((some - D @ parts[-1]) ** 2))
            bar.count(first + some.shape[1], Y.shape[1], "coding")
    codes = scipy.sparse.hstack(parts, format="csc")
    with whole_file(out, force) as file:
        scipy.sparse.save_npz(file, codes if columns else codes.T.tocsr())
    facts = {
        "out": out,
        "signals": Y.shape[1],
        "atoms": D.shape[1],
        "coder": repr(chosen),
        "entries": int(codes.nnz),
        "loss": error / Y.shape[1],
        "seconds": time.perf_counter() - begin,
    }
    if as_json:
        print_json(facts)
    elif not quiet:
        mean = codes.nnz / Y.shape[1]
        print(
            f"{out}: {Y.shape[1]} signals coded by {chosen!r}, {mean:.3g} atoms each on average; "
            f"{facts['seconds']:.1f} s."
        )


def choose_coder(model, learned, name, sparsity):
    """The coder that is named, or else the one that the model was learned with."""
    import numpy as np

    from manifold_dl.components.settings import is_text, shown

    widest = max(1, int(np.diff(learned.codes.indptr).max(initial=1)))
    if name is not None:
        return coder_named(name, sparsity or widest)
    stored = learned.settings.get("coder")
    if stored is None:
        raise ValueError(
            f"{model} does not say which coder it was learned with: name one, such as --coder omp."
        )
    if is_text(stored):
        raise ValueError(
            f"{model} was learned with a coder that has no name here, {shown(stored)}: name one with --coder."
        )
    coder = learned.component("coder")
    if sparsity is None:
        return coder
    if not is_dataclass(coder) or "sparsity" not in {field.name for field in fields(coder)}:
        raise ValueError(f"--sparsity {sparsity}: {coder!r}, the coder of {model}, has no such parameter.")
    return replace(coder, sparsity=sparsity)
