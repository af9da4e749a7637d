"""Checks for plug-ins: what the rest of the package relies on, measured on the component you pass.

All of them keep one convention. A check raises `CheckFailed`, an `AssertionError`, with a sentence that names
the fault; otherwise it returns a report, which is true, prints what was checked, remarks on what is allowed
but worth knowing, and lists what had to be skipped. The package's own components pass the same functions in
the tests.

==========================  =====================================================================
`check_gradient`            the gradient of any Pymanopt problem, by the slope of a Taylor remainder
`check_hessian`             its Hessian likewise, and the Hessian's symmetry
`check_manifold`            projection, metric, exp, log, dist, transport, order of the retraction
`check_regularizer`         value, gradient and Hessian product of a penalty on the dictionary
`check_coder`               form, symmetries and quality of sparse codes
`check_schedule`            subsets in range, without repeats, repeatable by their seed
`check_update`              a dictionary update that lowers its objective and keeps the support
`check_line_searcher`       a step that never makes things worse
`check_optimizer`           a better point of the manifold, and the minimum of easy problems
==========================  =====================================================================
"""

from manifold_dl.diagnostics.coder import check_coder
from manifold_dl.diagnostics.derivatives import check_gradient, check_hessian
from manifold_dl.diagnostics.line_searcher import check_line_searcher
from manifold_dl.diagnostics.manifold import check_manifold
from manifold_dl.diagnostics.optimizer import check_optimizer
from manifold_dl.diagnostics.regularizer import check_regularizer
from manifold_dl.diagnostics.report import CheckFailed, Report
from manifold_dl.diagnostics.schedule import check_schedule
from manifold_dl.diagnostics.taylor import TaylorReport
from manifold_dl.diagnostics.update import check_update

__all__ = [
    "CheckFailed",
    "Report",
    "TaylorReport",
    "check_coder",
    "check_gradient",
    "check_hessian",
    "check_line_searcher",
    "check_manifold",
    "check_optimizer",
    "check_regularizer",
    "check_schedule",
    "check_update",
]
