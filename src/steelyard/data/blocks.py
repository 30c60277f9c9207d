"""What every reader hands over: blocks of rows, where each row stands in its file, and what is wrong with some."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CHUNK_BYTES = 4 * 2**20  # of text or of numbers a block: enough for speed, nothing to any machine
LONGEST_MESSAGE = 1500


def one_line(message: object) -> str:
    """What somebody's library or a hostile file puts into a message, fit for a sentence."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(message))
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " …"


@dataclass(frozen=True)
class Fault:
    """An entry, or a whole row, that is no number."""

    row: int  # in its block
    line: int  # in its file
    what: str


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table; a row with a fault has NaN."""

    values: Array  # (rows, columns asked for)
    lines: NDArray  # (rows,) where they stand: line, row or message of the file, from 1
    faults: tuple[Fault, ...] = ()


@dataclass
class Log:
    """What was dropped or repaired while a recording was read, and what else is worth saying of it."""

    notes: list[str] = field(default_factory=list)
    rows_damaged: int = 0  # of those dropped: not mere repetitions
    _cuts: list[str] = field(default_factory=list)
    _dropped: dict[str, list[int]] = field(default_factory=dict)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def dropped(self, what: str, lines: Sequence[int] | NDArray, damaged: bool = True) -> None:
        """Rows left out for a reason."""
        self.rows_damaged += len(lines) if damaged else 0
        if len(lines):
            found = self._dropped.setdefault(what, [0, int(lines[0]), 0])
            found[0] += len(lines)
            found[2] = int(lines[-1])

    def cut(self, what: str) -> None:
        """A loss whose rows cannot be counted."""
        if what not in self._cuts:
            self._cuts.append(what)

    @property
    def rows_dropped(self) -> int:
        return sum(count for count, _, _ in self._dropped.values())

    @property
    def repairs(self) -> list[str]:
        """A sentence a repair, with how many rows and where."""
        return self._cuts + [
            f"dropped {what}: {count}, at {first}" + (f" … {last}" if count > 1 else "")
            for what, (count, first, last) in self._dropped.items()
        ]


class Source(Protocol):
    """A table in a file: its columns, and its rows block by block."""

    @property
    def format(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the columns; None where the file does not say."""

    @property
    def width(self) -> int: ...

    @property
    def joints(self) -> tuple[str, ...]:
        """Where the file names them beside the columns."""

    @property
    def about(self) -> dict:
        """What the file says of itself."""

    @property
    def row_word(self) -> str:
        """What a row is called in this file."""

    def blocks(self, wanted: Sequence[int], log: Log) -> Iterator[Block]:
        """The columns `wanted`, in that order, from the first row on."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """A table that is in memory as a whole."""

    format: str
    names: tuple[str, ...] | None
    columns: tuple[Array, ...]
    joints: tuple[str, ...] = ()
    about: dict = field(default_factory=dict)
    row_word: str = "row"

    @property
    def width(self) -> int:
        return len(self.columns)

    def blocks(self, wanted: Sequence[int], log: Log) -> Iterator[Block]:
        rows = len(self.columns[0]) if self.columns else 0
        step = max(1, CHUNK_BYTES // (8 * max(1, len(wanted))))
        for first in range(0, rows, step):
            cut = slice(first, min(first + step, rows))
            values = np.column_stack([np.asarray(self.columns[k][cut], dtype=np.float64) for k in wanted])
            yield checked(
                values, np.arange(cut.start + 1, cut.stop + 1), [self.title(k) for k in wanted], self.row_word
            )

    def title(self, column: int) -> str:
        return f"column {column + 1}" if self.names is None else f"'{self.names[column]}'"


def checked(values: Array, lines: NDArray, titles: Sequence[str], row_word: str) -> Block:
    """A block of numbers, with a fault for each row that has one which is not finite."""
    faults = []
    bad = ~np.isfinite(values)
    for row in np.flatnonzero(bad.any(axis=1)):
        column = int(bad[row].argmax())
        what = f"{row_word} {lines[row]}, {titles[column]}: {values[row, column]} is not a finite number"
        faults.append(Fault(int(row), int(lines[row]), what))
    return Block(values, lines, tuple(faults))


@dataclass(frozen=True, eq=False)
class RowMajor:
    """A table whose file has one number a line: row after row, each of `width` numbers."""

    source: Source
    width: int
    names: None = None
    joints: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        return self.source.format

    @property
    def about(self) -> dict:
        return self.source.about

    @property
    def row_word(self) -> str:
        return self.source.row_word

    def blocks(self, wanted: Sequence[int], log: Log) -> Iterator[Block]:
        values, lines, faults = np.zeros(0), np.zeros(0, np.int64), list[Fault]()
        for block in self.source.blocks([0], log):
            held = len(values)
            faults += [Fault(held + fault.row, fault.line, fault.what) for fault in block.faults]
            values = np.concatenate([values, block.values[:, 0]])
            lines = np.concatenate([lines, block.lines])
            rows = len(values) // self.width
            cut = rows * self.width
            ready = tuple(Fault(f.row // self.width, f.line, f.what) for f in faults if f.row < cut)
            faults = [Fault(f.row - cut, f.line, f.what) for f in faults if f.row >= cut]
            yield Block(values[:cut].reshape(rows, self.width)[:, list(wanted)], lines[: cut : self.width], ready)
            values, lines = values[cut:], lines[cut:]
        if len(values):
            log.dropped(f"last row with fewer than its {self.width} numbers", lines[:1])
