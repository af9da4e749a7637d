"""Which choices go together: the reason against every option, in the words of the error that it would cause.

Nothing is tabulated. An option is tried: the components are made and the first problem is built on a few of
the signals, and what the package refuses is the reason. So a plug-in is judged like a component of this
package.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from manifold_dl.components.entry_points import metadata_read_once
from manifold_dl.lab import parts
from manifold_dl.lab.data import Data, Upload
from manifold_dl.lab.job import Job, Stage, initial_point, make_job, make_problem
from manifold_dl.lab.settings import NONE, OWN, PROBLEMS, Refused, Settings
from manifold_dl.manifolds import feasible_set
from manifold_dl.optimizers import LeadingSingularVector
from manifold_dl.optimizers.by_name import optimizer as optimizer_by_name
from manifold_dl.optimizers.requirements import require_methods
from manifold_dl.problem.regularization import require_finite_penalties
from manifold_dl.schedules import sweep

FEW = 12  # signals that are enough to tell whether a problem can be built

#: The controls that are lists of components, and the kinds of the registry that they offer.
KINDS = {
    "manifold": "manifolds",
    "optimizer": "optimizers",
    "line_searcher": "line_searchers",
    "schedule": "schedules",
    "regularizer": "regularizers",
}


@dataclass(frozen=True)
class Own:
    """The user's file and regularizer, as far as there are any."""

    upload: Upload | None = None
    regularizer: Any = None
    allowed: bool = True  # False with --no-code


def options(control: str, own: Own = Own()) -> list[str]:
    """The options of a control.

    Parameters
    ----------
    control : str
        "problem", or one of `KINDS`.
    own : Own
        Whether code of the user's is allowed.

    Returns
    -------
    list of str

    Examples
    --------
    >>> options("problem")
    ['update_problem', 'lasso_problem']
    """
    if control == "problem":
        return list(PROBLEMS)
    names = parts.names(KINDS[control])
    if control == "regularizer":
        return [NONE, *names, *([OWN] if own.allowed else [])]
    return names


def fault(settings: Settings, own: Own = Own()) -> Refused | None:
    """Why these settings cannot be run, with the control that is to blame; None if they can.

    Parameters
    ----------
    settings : Settings
    own : Own

    Returns
    -------
    Refused or None

    Examples
    --------
    >>> fault(Settings(m=8, d=12, n=50, sparsity=2, optimizer="LeadingSingularVector"))
    Refused('LeadingSingularVector updates one atom at a time: use a schedule like OneAtATime().')
    >>> fault(Settings(m=8, d=12, n=50, sparsity=2))
    """
    try:
        with metadata_read_once():
            _try(make_job(settings, own.upload, own.regularizer))
    except Refused as refusal:
        return refusal
    return None


def reasons(settings: Settings, own: Own = Own()) -> dict[str, dict[str, str]]:
    """For every control, the options that do not go with the other settings, and why.

    Parameters
    ----------
    settings : Settings
    own : Own

    Returns
    -------
    dict of dicts
        Control → option → sentence.

    Examples
    --------
    >>> reasons(Settings(m=8, d=12, n=50, sparsity=2))["manifold"]["Orthonormal"]
    'k=12 atoms cannot be orthonormal in m=8 dimensions: Orthonormal takes at most m; for an overcomplete
    dictionary use Spheres.'
    """
    found: dict[str, dict[str, str]] = {}
    with metadata_read_once():
        base = _usable(settings, own)
        present = fault(base, own)
        for control in ("problem", *KINDS):
            tried = {option: _refusal(base, control, option, own) for option in options(control, own)}
            # A fault that another control has, whatever is chosen here, is no reason against this option.
            found[control] = {
                option: str(refusal)
                for option, refusal in tried.items()
                if refusal is not None and not _is_same(refusal, present, control)
            }
    return found


def _refusal(settings: Settings, control: str, option: str, own: Own) -> Refused | None:
    refusal = _of_line_searcher(settings, option) if control == "line_searcher" else None
    return refusal or fault(_with(settings, control, option), own)


def _with(settings: Settings, control: str, option: Any) -> Settings:
    return replace(settings, **{control: option})


def _is_same(refusal: Refused, present: Refused | None, control: str) -> bool:
    return present is not None and present.control != control and str(refusal) == str(present)


def _usable(settings: Settings, own: Own) -> Settings:
    """The settings, with the defaults of those controls alone whose numbers or data are refused."""
    for _ in fields(Settings):  # each control is reset at most once
        refusal = fault(settings, own)
        if refusal is None or refusal.control in ("problem", *KINDS):
            break
        reset = replace(settings, **_reset(refusal.control, settings))
        if reset == settings:
            break
        settings = reset
    return settings


def _reset(control: str, settings: Settings) -> dict[str, Any]:
    """Values that can be used in the place of those of a control."""
    default = Settings()
    if control in ("mu", "ridge", "turns"):
        return {"mu": default.mu, "ridge": default.ridge}
    if control in ("typed", "start"):
        return {"start": default.start}
    if control == "sparsity":
        return {"sparsity": 1}
    if control in ("file", "data", "n"):  # no file, or too small a picture: signals as long as its patches
        return {"data": "synthetic", "m": settings.length}
    return {control: getattr(default, control)}


def _of_line_searcher(settings: Settings, option: str) -> Refused | None:
    if parts.takes_line_searcher(settings.optimizer):
        return None
    try:
        optimizer_by_name(settings.optimizer, line_searcher=option)
    except ValueError as error:
        return Refused("line_searcher", error)
    return None


def _try(job: Job) -> None:
    """Build the problem of the first set on a few signals, and compare optimizer and manifold."""
    few = _with_few_signals(job)
    optimizer = few.optimizer()
    atoms = None
    if not few.moves_all:
        try:
            atoms = sweep(few.schedule, few.start.shape[1], 0)[0]
        except Exception as error:  # of a schedule that somebody wrote
            raise Refused("schedule", error) from None
    alpha, mu = min(job.penalties, key=lambda pair: pair[1])
    stage = Stage(atoms, few.start, few.support, alpha, mu)
    m, d = few.start.shape
    try:
        feasible_set(job.manifold, m, d if atoms is None else len(atoms))
    except Exception as error:
        raise Refused("manifold", error) from None
    try:
        problem = make_problem(few, stage, threads=1)
        start = initial_point(few, stage, problem)
    except Exception as error:
        raise Refused(_blamed(str(error)), error) from None
    try:
        require_methods(optimizer, problem.feasible)
        if isinstance(optimizer, LeadingSingularVector):
            if job.is_lasso:
                raise ValueError("There is no closed form with codes of the lasso: take another optimizer.")
            optimizer.run(problem, initial_point=start)
    except ValueError as error:
        raise Refused("optimizer", error) from None
    if few.regularizers:
        try:
            require_finite_penalties(few.regularizers, problem.dictionary(start))
            problem.riemannian_gradient(start)
        except Exception as error:
            raise Refused("regularizer", error) from None


def _with_few_signals(job: Job) -> Job:
    signals = job.data.signals
    if signals.shape[1] <= FEW:
        return job
    # Of a picture some signals may be zero, and a problem without any is none.
    chosen = np.argsort(-np.sum(signals**2, axis=0), kind="stable")[:FEW]
    support = None if job.support is None else job.support[:, chosen]
    data = Data(np.ascontiguousarray(signals[:, chosen]), support, job.data.truth, job.data.patch)
    return replace(job, data=data, support=support)


def _blamed(message: str) -> str:
    """The control that an error of `update_problem` is about."""
    if "manifold" in message or "ties all atoms" in message or "start is not on" in message:
        return "manifold"
    return "sparsity" if "support" in message else "regularizer" if "regulariz" in message else "problem"
