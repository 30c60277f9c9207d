"""The engine: tasks through joblib, here or on a cluster; every finished task is a file, so that nothing is lost.

A task's file is named by all that the task depends on. What a killed worker or a stopped study leaves behind is a set
of finished files; the rest is done when the study is run again, and no task can be in the table twice.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from ...errors import OptionError
from .cells import Task
from .runs import Row, run_task
from .table import Table, joined, read_table, table_name, table_of, write_table

PARTS = "parts"
# A machine whose workers die this many times without a task being finished in between is not going to finish.
_DEATHS = 3

Watch = Callable[[int, int], None]  # tasks done, tasks in all


@dataclass(frozen=True)
class Crew:
    """Who does the work: so many processes here, or the workers of a Dask scheduler."""

    workers: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise OptionError(f"{self.workers} workers; give 1 or more")


def _done(index: int, task: Task) -> tuple[int, list[Row]]:
    return index, run_task(task)


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise OptionError("a scheduler needs Dask: pip install 'steelyard[dask]'") from None
    try:
        client = Client(scheduler, timeout=20)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"no Dask scheduler answers at {scheduler} ({error}); start one by `dask scheduler` and `dask worker`"
        ) from None
    with client:
        yield client


@contextlib.contextmanager
def _backend(crew: Crew) -> Iterator[dict[str, Any]]:
    if crew.scheduler is None:
        yield {"n_jobs": crew.workers, "backend": "loky", "inner_max_num_threads": 1}
        return
    with _client(crew.scheduler) as client, joblib.parallel_config(backend="dask", client=client):
        yield {"n_jobs": -1}


def _finished(tasks: dict[int, Task], crew: Crew) -> Iterator[tuple[int, list[Row]]]:
    """Rows of tasks as they are finished, in any order."""
    if crew.workers == 1 and crew.scheduler is None:
        yield from (_done(index, task) for index, task in tasks.items())
        return
    with _backend(crew) as options:
        parallel = joblib.Parallel(**options, return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(_done)(index, task) for index, task in tasks.items())


def run_tasks(tasks: Sequence[Task], folder: Path, crew: Crew, watch: Watch | None = None) -> Table:
    """Do what has not been done yet, and return the whole table in the order of the tasks."""
    parts = folder / PARTS
    parts.mkdir(parents=True, exist_ok=True)
    paths = [parts / f"{task.key}.npz" for task in tasks]
    left = {k: task for k, (task, path) in enumerate(zip(tasks, paths, strict=True)) if not path.is_file()}
    deaths = 0
    while left:
        try:
            for index, rows in _finished(dict(left), crew):
                write_table(table_of(rows), paths[index])
                del left[index]
                deaths = 0
                if watch is not None:
                    watch(len(tasks) - len(left), len(tasks))
        except TerminatedWorkerError:
            deaths += 1
            if deaths == _DEATHS:
                raise OptionError(
                    f"workers died {deaths} times without finishing a task; there may be too little memory for "
                    f"{crew.workers} of them: take fewer, and the study goes on where it was"
                ) from None
    whole = joined([read_table(path) for path in paths])
    write_table(whole, folder / table_name())
    return whole


def default_workers() -> int:
    """As many processes as this one may use processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
