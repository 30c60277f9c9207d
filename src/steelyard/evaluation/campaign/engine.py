"""The engine: tasks through joblib, here or on a cluster; every finished task is a file, so that nothing is lost.

A task's file is named by all that the task depends on. What a killed worker or a stopped study leaves behind is a set
of finished files; the rest is done when the study is run again, and no task can be in the table twice.
"""

import contextlib
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from ...errors import DataError, OptionError
from .cells import Task
from .runs import Row, run_task
from .table import Table, joined, read_table, table_name, table_of, write_table

PARTS = "parts"
# A machine whose workers die this many times without a task being finished in between is not going to finish.
_DEATHS = 3

Watch = Callable[[int, int], None]  # tasks done, tasks in all
Say = Callable[[str], None]


def silent(text: str) -> None:
    """Nothing is said."""


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
    # It complains at length, on standard error, of what is said in one sentence here.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with client:
        try:
            yield client
        except CancelledError:
            raise OptionError(
                f"the Dask scheduler at {scheduler} was lost; start it and its workers again: the study goes on where "
                "it was"
            ) from None


@contextlib.contextmanager
def _backend(crew: Crew, say: Say) -> Iterator[dict[str, Any]]:
    if crew.scheduler is None:
        yield {"n_jobs": crew.workers, "backend": "loky", "inner_max_num_threads": 1}
        return
    with _client(crew.scheduler) as client:
        threads = client.nthreads()
        if not threads:
            raise OptionError(f"no worker is at {crew.scheduler}; start some by `dask worker {crew.scheduler}`")
        if any(count > 1 for count in threads.values()):
            # A process does one task at a time: the clock of an estimator is that of its process.
            say(
                f"some of the {len(threads)} workers at {crew.scheduler} have several threads and will use one; start "
                f"them by `dask worker {crew.scheduler} --nthreads 1 --nworkers N`"
            )
        with joblib.parallel_config(backend="dask", client=client):
            yield {"n_jobs": -1}


def _worker_died() -> tuple[type[Exception], ...]:
    """What it is called when workers die over a task: here, and by Dask, which tries others first."""
    if find_spec("distributed") is None:
        return (TerminatedWorkerError,)
    from distributed.scheduler import KilledWorker

    return (TerminatedWorkerError, KilledWorker)


def _finished(tasks: dict[int, Task], crew: Crew, say: Say) -> Iterator[tuple[int, list[Row]]]:
    """Rows of tasks as they are finished, in any order."""
    if crew.workers == 1 and crew.scheduler is None:
        yield from (_done(index, task) for index, task in tasks.items())
        return
    with _backend(crew, say) as options:
        parallel = joblib.Parallel(**options, return_as="generator_unordered", batch_size=1)
        with warnings.catch_warnings():
            # When a study is stopped: that what was being done is lost, which is as it should be.
            warnings.filterwarnings("ignore", "[0-9]+ tasks which were still being processed", UserWarning)
            yield from parallel(joblib.delayed(_done)(index, task) for index, task in tasks.items())


@contextlib.contextmanager
def _nobody_else(folder: Path) -> Iterator[None]:
    """The folder is this process's own until it ends, however it ends; where a system has no locks, nothing happens.

    Two at the same folder would be right, for they write the same rows, but would do all the work twice.
    """
    if find_spec("fcntl") is None:
        yield
        return
    import fcntl

    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(
                f"another process is at work in {folder}; wait for it, look at what it has with --so-far, or take "
                "another --output"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield


def _paths(tasks: Sequence[Task], folder: Path) -> list[Path]:
    return [folder / PARTS / f"{task.key}.npz" for task in tasks]


def _part(task: Task, path: Path) -> Table | None:
    """The rows of a finished task; nothing if its file is not there, or not whole."""
    if not path.is_file():
        return None
    try:
        table = read_table(path)
    except DataError:
        return None
    return table if len(table.get("status", ())) == task.rows else None


def finished_rows(tasks: Sequence[Task], folder: Path) -> Table | None:
    """What a folder has of these tasks, in their order."""
    found = [_part(task, path) for task, path in zip(tasks, _paths(tasks, folder), strict=True)]
    there = [table for table in found if table is not None]
    return joined(there) if there else None


def _left(tasks: Sequence[Task], paths: Sequence[Path], say: Say) -> dict[int, Task]:
    """Tasks to do. A file that a disk or a hand has damaged is thrown away, and its runs are done again."""
    left = {}
    for k, (task, path) in enumerate(zip(tasks, paths, strict=True)):
        if _part(task, path) is not None:
            continue
        if path.is_file():
            say(f"{path} is damaged: its {task.rows} runs are done again")
            path.unlink()
        left[k] = task
    return left


@dataclass(frozen=True, eq=False)
class Work:
    """A whole table, and what was done for it this time."""

    table: Table
    runs: int  # done now, not found
    seconds: float  # by the clock on the wall

    @property
    def rate(self) -> float:
        """Runs a second."""
        return self.runs / self.seconds if self.seconds > 0 else float("nan")


def _run(tasks: Sequence[Task], folder: Path, crew: Crew, watch: Watch | None, say: Say) -> Work:
    paths = _paths(tasks, folder)
    left = _left(tasks, paths, say)
    begun, runs, deaths = time.perf_counter(), 0, 0
    while left:
        try:
            for index, rows in _finished(dict(left), crew, say):
                write_table(table_of(rows), paths[index])
                del left[index]
                runs, deaths = runs + len(rows), 0
                if watch is not None:
                    watch(len(tasks) - len(left), len(tasks))
        except _worker_died():
            deaths += 1
            if deaths == _DEATHS:
                raise OptionError(
                    f"workers died {deaths} times without finishing a task; there may be too little memory for "
                    "as many as there are: take fewer, and the study goes on where it was"
                ) from None
            say("a worker died; its task is done again")
        except KeyboardInterrupt:
            done = len(tasks) - len(left)
            say(f"stopped: {done} of {len(tasks)} tasks are done; the same command goes on (--so-far shows them)")
            raise
    seconds = time.perf_counter() - begun
    whole = joined([read_table(path) for path in paths])
    write_table(whole, folder / table_name())
    return Work(whole, runs, seconds)


def run_tasks(tasks: Sequence[Task], folder: Path, crew: Crew, watch: Watch | None = None, say: Say = silent) -> Work:
    """Do what has not been done yet, and return the whole table in the order of the tasks."""
    (folder / PARTS).mkdir(parents=True, exist_ok=True)
    with _nobody_else(folder):
        return _run(tasks, folder, crew, watch, say)


def default_workers() -> int:
    """As many processes as this one may use processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
