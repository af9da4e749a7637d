"""Progress bars on stderr, one per task, with the remaining time; none if stderr is not a terminal."""

import contextlib
import io
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn


class Bars:
    """A display of several `Bar`s for a ``with`` block; it is removed at the end.

    Parameters
    ----------
    quiet : bool
        Show nothing, and suppress what the kernels print on stderr while they are compiled.
    """

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True)
        # Errors are printed after the block.
        self._silence = contextlib.redirect_stderr(io.StringIO()) if quiet else contextlib.nullcontext()
        self._display = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._silence.__enter__()
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()
        self._silence.__exit__(None, None, None)

    def bar(self, description: str, note: str = "starting; the first run compiles its kernels") -> "Bar":
        """Add a bar.

        Parameters
        ----------
        description : str
            The text before the bar.
        note : str
            The text after the bar until the first progress.

        Returns
        -------
        Bar
        """
        return Bar(self._display, self._display.add_task(description, total=None, note=note))


class Bar:
    """One progress bar; a callback of `learn_dictionary` and of `denoise`.

    Parameters
    ----------
    display : rich.progress.Progress
        Where it is shown.
    task : rich.progress.TaskID
        Its number in the display.
    """

    def __init__(self, display: Progress, task: TaskID) -> None:
        self._display, self._task = display, task
        self._phase: str | None = None

    def begin(self, total: int) -> None:
        """Start the phase of learning, with so many iterations."""
        self._enter("learning", total)

    def __call__(self, step: Any) -> None:
        """Show the iteration and the loss of a `Step`."""
        self._advance(step.iteration + 1, f"learning, loss {step.loss:.4g}")

    def reconstructed(self, done: int, total: int) -> None:
        """Show how many patches of a picture are reconstructed."""
        self.count(done, total, "rebuilding the picture")

    def count(self, done: int, total: int, note: str) -> None:
        """Show the progress of a task other than learning; every `note` is a phase of its own."""
        self._enter(note, total)
        self._advance(done)

    def finish(self, note: str) -> None:
        """Show a full bar with a last note."""
        self._display.update(self._task, total=1, completed=1, note=note)

    def hide(self) -> None:
        """Remove the bar from the display."""
        self._display.update(self._task, visible=False)

    def _advance(self, done: int, note: str | None = None) -> None:
        fields: dict[str, Any] = {"note": note} if note else {}
        self._display.update(self._task, completed=done, **fields)

    def _enter(self, phase: str, total: int) -> None:
        # The clock is reset as well, because every phase has its own speed.
        if phase != self._phase:
            self._display.reset(self._task, total=total, note=phase)
        self._phase = phase
