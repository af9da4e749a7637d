"""The journal of an unfinished run: one line of JSON for the setting, then one for each measured part.

`running.run` appends to it after every part and reads it to continue an interrupted run.
"""

import json
from pathlib import Path
from typing import Any

from manifold_dl.experiments.processes import Finding


def read_journal(path: Path, setting: dict[str, Any]) -> dict[int, Finding] | None:
    """Return the findings of the parts that are done, by index, or None if there is no journal.

    A last line that was cut off is ignored, so its part is measured again. A journal with another setting,
    or one with a damaged line, raises ValueError.
    """
    if not path.exists():
        return None
    first, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if not lines:
        return None
    require_same(parse(first, path), setting, path)
    entries = [parse(line, path, needed=frozenset({"part", "rows", "seconds"})) for line in lines[:-1]]
    return {entry.pop("part"): entry for entry in entries}


def parse(text: str, path: Path, needed: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a JSON object that has the needed keys; otherwise raise ValueError that names `path`."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not needed <= found.keys():
        raise ValueError(f"{path} is damaged; choose another folder with --out, or start again with --force.")
    return found


def require_same(found: dict[str, Any], setting: dict[str, Any], path: Path) -> None:
    """Raise ValueError if a file belongs to a run with another setting."""
    different = [key for key in setting if found.get(key) != setting[key]]
    if different:
        raise ValueError(
            f"{path} belongs to a run with other {' and '.join(different)}; "
            "choose another folder with --out, or start again with --force."
        )
