"""Tables for the console and for Markdown."""

from collections.abc import Iterable
from typing import NamedTuple

import rich.table


class Table(NamedTuple):
    """A title, the heads of the columns, and the lines, all text."""

    title: str
    head: list[str]
    lines: list[list[str]]

    def markdown(self) -> str:
        """For a page."""
        rule = "|---" * len(self.head) + "|"
        body = "\n".join(f"| {' | '.join(line)} |" for line in self.lines)
        title = f"{self.title}\n\n" if self.title else ""
        return f"{title}| {' | '.join(self.head)} |\n{rule}\n{body}"

    def rich(self) -> rich.table.Table:
        """For the console."""
        table = rich.table.Table(title=self.title)
        for place, name in enumerate(self.head):
            table.add_column(name, justify="left" if place == 0 else "right")
        for line in self.lines:
            table.add_row(*line)
        return table


def in_order(names: Iterable[str]) -> list[str]:
    """Each once: ours, then the others as they come first."""
    return sorted(dict.fromkeys(names), key=lambda name: not name.startswith(("ours", "manifold_dl")))


def number(value: float | None, digits: str = ".2f") -> str:
    """Formatted, or a dash where there is none."""
    return "–" if value is None else format(value, digits)


def mean(values: list[float]) -> float | None:
    """None of nothing."""
    return sum(values) / len(values) if values else None
