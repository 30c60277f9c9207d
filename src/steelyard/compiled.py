"""The one door to Numba: kernels are compiled once a machine, kept on disk, and run over samples in threads.

Compiled functions live in folders named `kernels`. Numba looks only at a function's own file to see whether what it
kept on disk is stale, so a change in a function that another kernel calls would go unseen; here every kernel is stale
as soon as any kernel's source differs.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from threadpoolctl import ThreadpoolController

PACKAGE = Path(__file__).parent
# Below this many samples a second thread costs more than it brings (waking one takes about 100 µs).
SAMPLES_WORTH_A_THREAD = 1024


@cache
def _sources_hash() -> str:
    digest = hashlib.sha256()
    for path in (Path(__file__), *sorted(PACKAGE.glob("**/kernels/*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Announcer(event.Listener):
    """Says once a process that kernels are being compiled, and only if they really are."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, started: event.Event) -> None:
        module = started.data["dispatcher"].py_func.__module__
        if self.said or not module.startswith("steelyard."):
            return
        self.said = True
        if os.environ.get("STEELYARD_QUIET", "") in ("", "0"):
            print("steelyard: compiling its kernels for this machine (once, well under a minute) …", file=sys.stderr)

    def on_end(self, ended: event.Event) -> None:
        """Nothing is said at the end."""


_announcer = _Announcer()
event.register("numba:compile", _announcer)


def kernel(function: Callable) -> Any:
    """Compile a function to machine code that runs without the interpreter's lock, and keep it on disk.

    It is inlined into its callers: a call hands over every array as seven numbers, which costs more than the kernel.
    """
    path = Path(function.__code__.co_filename)
    if path.parent.name != "kernels":
        raise RuntimeError(f"{path}: compiled functions live in a folder named 'kernels'")
    options = {"error_model": "numpy", "fastmath": {"contract", "nsz"}, "forceinline": True}
    dispatcher = numba.njit(nogil=True, cache=True, **options)(function)
    # The stamp that Numba compares with the one on disk; without this attribute its own (mtime and size) stays.
    cache_file = getattr(dispatcher._cache, "_cache_file", None)
    if cache_file is not None and hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _sources_hash()
    return dispatcher


def threads() -> int:
    """How many threads a batch uses: `STEELYARD_THREADS`, else the processors this process may use."""
    asked = os.environ.get("STEELYARD_THREADS", "")
    if asked.isdigit():
        return max(1, int(asked))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_pool_lock = threading.Lock()
_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def _threads_of_this_process(count: int) -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        # After a fork the parent's threads are gone: a pool belongs to one process.
        if _pool is None or _pool[:2] != (os.getpid(), count):
            _pool = (os.getpid(), count, ThreadPoolExecutor(count, thread_name_prefix="steelyard"))
        return _pool[2]


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking the libraries up takes milliseconds, so once


def one_blas_thread() -> AbstractContextManager:
    """Linear algebra in one thread: with small matrices, or inside our own threads, more are in each other's way."""
    return _libraries().limit(limits=1, user_api="blas")


def over_samples(count: int, work: Callable[[int, int], None]) -> None:
    """Call `work(start, stop)` on slices of `range(count)` in parallel; the kernels inside release the lock."""
    workers = min(threads(), max(1, count // SAMPLES_WORTH_A_THREAD))
    if workers == 1:
        work(0, count)
        return
    # More slices than threads, so that a thread that is held up does not hold up the rest.
    slices = min(4 * workers, count // SAMPLES_WORTH_A_THREAD)
    bounds = [count * k // slices for k in range(slices + 1)]
    pool = _threads_of_this_process(workers)
    for done in [pool.submit(work, a, b) for a, b in pairwise(bounds)]:
        done.result()
