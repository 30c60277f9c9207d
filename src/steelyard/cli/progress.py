"""What a command says while it works: a bar for people who watch, lines with --verbose, nothing else."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..identification.fit import Progress as Reporter
from .options import is_quiet, is_verbose
from .output import say


@contextmanager
def reporting() -> Iterator[Reporter]:
    """Where work reports what it does and the share of it that is done."""
    err = Console(stderr=True, highlight=False)
    if is_quiet():
        yield lambda what, share: None
    elif is_verbose():
        yield _lines(err)
    elif not err.is_terminal:
        yield lambda what, share: None
    else:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda what, share: bar.update(task, description=what, completed=share)


def _lines(err: Console) -> Reporter:
    """A line at every change of what is done, with the seconds since the beginning."""
    begun, before = time.perf_counter(), ""

    def report(what: str, share: float) -> None:
        nonlocal before
        if what != before:
            say(err, f"{time.perf_counter() - begun:7.1f} s  {what}")
        before = what

    return report
