"""Components by name: ours, some of Pymanopt's, and those of packages that register their own.

A package offers its components to this one by entry points of the group ``manifold_dl``, whose names begin
with the kind. In its ``pyproject.toml``::

    [project.entry-points.manifold_dl]
    "coders.nearest" = "my_package.coders:Nearest"
    "regularizers.peaks" = "my_package.penalties:Peaks"

Once it is installed, ``get("coders", "nearest")`` returns the class, and the command line accepts the name.
Capitals, hyphens and underscores in names do not matter: ``"trust-regions"`` is `TrustRegions`.

Nothing of a plug-in is imported before it is used. A broken one is reported by name and left out; it never
breaks the rest. The functions are those of `components/registry.py`; this module imports every subpackage
that registers components, so that its lists are complete.
"""

from manifold_dl import (  # noqa: F401 - importing a package registers its components
    coders,
    learning,
    line_search,
    manifolds,
    optimizers,
    regularizers,
    schedules,
    updates,
)
from manifold_dl.components.entry_points import GROUP, PluginError, PluginWarning
from manifold_dl.components.registry import KINDS, available, get, load

__all__ = ["GROUP", "KINDS", "PluginError", "PluginWarning", "available", "get", "load"]
