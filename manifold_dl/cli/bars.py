"""Progress on stderr, a line for each piece of work, with the time left; nothing where nobody is looking."""

import contextlib
import io

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class Bars:
    """A display of several `Bar`s, for a `with` block; it vanishes at the end."""

    def __init__(self, quiet):
        console = Console(stderr=True)
        # The kernels say on stderr when they are compiled; errors are printed after the block.
        self.silence = contextlib.redirect_stderr(io.StringIO()) if quiet else contextlib.nullcontext()
        self.display = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )

    def __enter__(self):
        self.silence.__enter__()
        self.display.start()
        return self

    def __exit__(self, *_):
        self.display.stop()
        self.silence.__exit__(None, None, None)

    def bar(self, description, note="starting; the first run compiles its kernels"):
        return Bar(self.display, self.display.add_task(description, total=None, note=note))


class Bar:
    """One line: a callback of `learn_dictionary` and of `denoise`."""

    def __init__(self, display, task):
        self.display, self.task = display, task
        self.phase = None

    def begin(self, total):
        self._enter("learning", total)

    def __call__(self, step):
        self.advance(step.iteration + 1, f"learning, loss {step.loss:.4g}")

    def reconstructed(self, done, total):
        self._enter("rebuilding the picture", total)
        self.advance(done)

    def count(self, done, total, note):
        """Work that is not learning: so many of so many."""
        self._enter(note, total)
        self.advance(done)

    def advance(self, done, note=None):
        self.display.update(self.task, completed=done, **({"note": note} if note else {}))

    def finish(self, note):
        self.display.update(self.task, total=1, completed=1, note=note)

    def hide(self):
        self.display.update(self.task, visible=False)

    def _enter(self, phase, total):
        # A fresh start for the clock too: each phase has a speed of its own.
        if phase != self.phase:
            self.display.reset(self.task, total=total, note=phase)
        self.phase = phase
