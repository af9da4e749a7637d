"""The manifolds and optimizers of docs/manifold_table.py, which is loaded from its file."""

import importlib.util
from pathlib import Path

_SOURCE = Path(__file__).parents[2] / "docs" / "manifold_table.py"
_spec = importlib.util.spec_from_file_location("manifold_table", _SOURCE)
manifold_table = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(manifold_table)
MANIFOLDS, OPTIMIZERS = manifold_table.MANIFOLDS, manifold_table.OPTIMIZERS
