"""Lines of numbers in text, read by compiled code in several threads."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..compiled import over_samples
from .blocks import Array
from .kernels import decimals, tables
from .kernels.tables import BLANK, PLAIN

__all__ = ["BLANK", "PLAIN", "read_lines"]


@cache
def _powers() -> NDArray[np.uint64]:
    return decimals.powers_of_five()


def read_lines(
    chunk: bytes, start: int, delimiter: str | None, decimal: str, wanted: Sequence[int], widths: tuple[int, int]
) -> tuple[Array, NDArray[np.int64]]:
    """The columns `wanted` of all lines from `start` on, a row a line, each number the nearest double.

    The second array is PLAIN for lines that were read, BLANK for empty ones, and for any other where it begins: its
    row then holds nothing of use. `widths` are how many entries a line may have, the larger number first.
    """
    end = b"\n" * (tables.PADDING + (not chunk.endswith(b"\n")))
    text = np.frombuffer(chunk + end, dtype=np.uint8)
    size = len(text) - tables.PADDING
    columns = list(dict.fromkeys(wanted))
    places = np.full(widths[0], -1)
    places[columns] = np.arange(len(columns))
    how = (-1 if delimiter is None else ord(delimiter), ord(decimal), places, widths[1], _powers())
    cuts: dict[int, tuple[int, int, int]] = {}

    def cut(a: int, b: int) -> None:
        first, last = (tables.first_line_from(text, start + k) for k in (a, b))
        cuts[a] = first, last, tables.lines_in(text, first, last)

    over_samples(size - start, cut)
    rows = {a: sum(count for k, (_, _, count) in cuts.items() if k < a) for a in cuts}
    total = sum(count for _, _, count in cuts.values())
    values, kind = np.empty((total, len(columns))), np.empty(total, dtype=np.int64)

    def read(a: int, b: int) -> None:
        first, last, count = cuts[a]
        mine = slice(rows[a], rows[a] + count)
        tables.read_lines(text, first, last, *how, values[mine].view(np.uint64), kind[mine])

    over_samples(size - start, read)
    return values if columns == list(wanted) else values[:, [columns.index(k) for k in wanted]], kind
