"""Tables in text: CSV and its relatives, a block of lines at a time.

Compiled code reads the lines that are written plainly. A line that it leaves is read again by itself, so that every
fault is known with its line and its column.
"""

import csv
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import DataError
from . import units
from .blocks import CHUNK_BYTES, Block, Fault, Log
from .columns import unit_in
from .lines import BLANK, read_lines

JOINTS, ABOUT = "# joints:", "# about:"
COMMENTS = ("#", "%", "//")
DELIMITERS = (";", "\t", ",", "|", None)  # None: spaces
LONGEST_LINE = 16 * 2**20
SAMPLE_LINES = 60
_CLOCK = re.compile(r"\d:\d\d")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TextTable:
    """How a table is written; None is found out."""

    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    skip_rows: int = 0


def number_in(text: str, decimal: str = ".") -> float | None:
    """The number that a cell holds, None where it holds none; Python alone would also read 1_0."""
    if "_" in text or (decimal == "," and "." in text):
        return None
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return None


def cells_in(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return [cell.strip('"') for cell in line.split()]
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error:
        return [cell.strip() for cell in line.split(delimiter)]


def _pieces(path: Path) -> Iterator[bytes]:
    """The file as UTF-8 without a byte order mark, a few megabytes at a time."""
    with path.open("rb") as plain:
        start = plain.read(4)
        plain.seek(0)
        file = gzip.GzipFile(fileobj=plain) if start.startswith(b"\x1f\x8b") else plain
        start = file.read(4)
        file.seek(0)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = io.TextIOWrapper(file, encoding="utf-16", newline="")
            while piece := text.read(CHUNK_BYTES):
                yield piece.encode("utf-8", "replace")
            return
        if start.startswith(b"\xef\xbb\xbf"):
            file.seek(3)
        while raw := file.read(CHUNK_BYTES):
            yield raw


def _chunks(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Whole lines, a few megabytes at a time, and whether the last of them is ended."""
    carry, old_mac = b"", None
    try:
        for piece in _pieces(path):
            if old_mac is None:
                old_mac = b"\r" in piece and b"\n" not in piece
            if old_mac:
                piece = piece.replace(b"\r", b"\n")
            end = piece.rfind(b"\n") + 1
            if end:
                yield b"".join((carry, memoryview(piece)[:end])), True
                carry = b""
            carry += piece[end:]
            if len(carry) > LONGEST_LINE:
                raise DataError(f"no line ends within {LONGEST_LINE} bytes; this is not a table in text")
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start} is not UTF-16 as its mark says; save it as UTF-8") from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"the compressed file is damaged: {error}; unpack what is whole and give that") from None
    if carry:
        yield carry, False


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _content(chunk: bytes, skip: int) -> Iterator[tuple[int, str]]:
    """Line numbers and lines that hold something, comments too."""
    for number, raw in enumerate(io.BytesIO(chunk), 1):
        line = _text(raw).strip("\r\n\ufeff")
        if number > skip and line.strip():
            yield number, line


def _decimal_of(cells: list[str], delimiter: str | None) -> str:
    """A comma, where numbers are written so and none with a point."""
    commas = sum(_DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells)
    return "," if delimiter != "," and commas and not any("." in cell for cell in cells) else "."


def _sniffed(lines: list[str], given: TextTable) -> tuple[str | None, str]:
    """The delimiter and the decimal mark that make most of the lines numbers, in rows of one width."""
    best, choice = (-1.0, -1.0), (",", ".")
    options = DELIMITERS if given.delimiter is None else (None if given.delimiter == " " else given.delimiter,)
    for delimiter in options:
        rows = [cells_in(line, delimiter) for line in lines]
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        cells = [cell for row in rows[1:] or rows for cell in row if cell]
        decimal = given.decimal or _decimal_of(cells, delimiter)
        numbers = sum(number_in(cell, decimal) is not None for cell in cells) / max(1, len(cells))
        if given.delimiter is None and width == 1 and delimiter is not None:
            continue
        score = (round(numbers, 2), count / len(rows))
        if score > best:
            best, choice = score, (delimiter, decimal)  # type: ignore[assignment]
    return choice


def _units_beneath(rows: list[list[str]], decimal: str) -> tuple[str, ...]:
    """The row of units beneath a header, none where the second row is anything else."""
    if len(rows) < 3 or len(rows[1]) != len(rows[0]):
        return ()
    cells = [cell.strip("[]() ") for cell in rows[1]]
    if any(cell and number_in(cell, decimal) is not None for cell in cells):
        return ()
    written = [cell for cell in cells if any(letter.isalpha() or letter == "°" for letter in cell)]
    if not any(units.is_unit(cell) for cell in written):
        return ()
    return tuple(cell if cell in written else "" for cell in cells)


class Delimited:
    """A table in text; what it says of its columns is known at once, its rows come block by block."""

    row_word = "line"
    format = "csv"

    def __init__(self, path: Path, how: TextTable | None = None) -> None:
        self.path, how = path, how or TextTable()
        first, _ = next(_chunks(path), (b"", True))
        if b"\0" in first[:65536]:
            raise DataError("it holds NUL bytes: a binary file, or UTF-16 without its mark; save it as UTF-8 text")
        self.joints: tuple[str, ...] = ()
        self.about: dict = {}
        comments, lines = [], list[tuple[int, str]]()
        for number, line in _content(first, how.skip_rows):
            if line.lstrip().startswith(COMMENTS):
                if not lines:
                    comments.append(line.strip())
                continue
            lines.append((number, line))
            if len(lines) >= SAMPLE_LINES:
                break
        if not lines:
            raise DataError("no rows; a recording needs time, positions and torques in at least 2 rows")
        self._read_comments(comments)
        texts = [line for _, line in lines]
        self.delimiter, self.decimal = _sniffed(texts, how)
        rows = [cells_in(line, self.delimiter) for line in texts]
        headed = how.header
        if headed is None:
            headed = any(cell and number_in(cell, self.decimal) is None for cell in rows[0]) and not any(
                number_in(cell, self.decimal) is not None for cell in rows[0]
            )
        beneath = _units_beneath(rows, self.decimal) if headed else ()
        self.first_line = lines[1][0] + 1 if beneath else lines[0][0] + headed  # of the data
        body = rows[1 + bool(beneath) :] if headed else rows
        self._physical = Counter(len(row) for row in body or rows).most_common(1)[0][0]
        # A delimiter at the end of every line makes no column.
        ends_empty = self._physical > 1 and all(row[-1] == "" for row in rows if len(row) == self._physical)
        self.width = self._physical - ends_empty
        names = rows[0] if headed else self._names_in_comments(comments)
        if names is not None:
            names = names[:-1] if len(names) == self.width + 1 and names[-1] == "" else names
            if len(names) != self.width:
                raise DataError(self._other_width(lines, rows, len(names)))
        if names is not None and beneath:
            pairs = zip(names, beneath, strict=False)
            names = [f"{name} [{unit}]" if unit and unit_in(name)[1] is None else name for name, unit in pairs]
        self.names = None if names is None else tuple(names)

    def _other_width(self, lines: list[tuple[int, str]], rows: list[list[str]], names: int) -> str:
        """The sentence on a first line that is no header of what follows, with how to skip what stands before one."""
        said = f"line {lines[0][0]}: the header has {names} names, the rows below have {self.width} entries"
        for (line, _), row in zip(lines[1:], rows[1:], strict=True):
            texts = [cell for cell in row if number_in(cell, self.decimal) is None]
            if len(row) == self.width:
                return f"{said}; skip what stands before it: table: {{skip_rows: {line - 1}}}" if texts else said
        return said

    def _read_comments(self, comments: list[str]) -> None:
        for line in comments:
            if line.startswith(JOINTS):
                self.joints = tuple(cells_in(line[len(JOINTS) :].strip(), ","))
            elif line.startswith(ABOUT):
                try:
                    said = json.loads(line[len(ABOUT) :])
                except (ValueError, RecursionError):
                    continue  # a remark of somebody else's
                self.about = said if isinstance(said, dict) else {}

    def _names_in_comments(self, comments: list[str]) -> list[str] | None:
        """A header behind a comment mark, as NumPy and rostopic write it."""
        for line in reversed(comments):
            if not line.startswith((JOINTS, ABOUT)):
                # rostopic's %time, in nanoseconds, keeps its mark
                cells = cells_in(
                    line.lstrip("#/") if line.startswith(("%time", "#", "//")) else line[1:], self.delimiter
                )
                if len(cells) == self.width and all(cell and number_in(cell) is None for cell in cells):
                    return cells
        return None

    def title(self, column: int) -> str:
        return f"column {column + 1}" if self.names is None else f"column '{self.names[column]:.60}'"

    def blocks(self, wanted: Sequence[int], log: Log) -> Iterator[Block]:
        """The rows; a last row that was cut off is dropped."""
        line, waiting = 1, None
        for chunk, ended in _chunks(self.path):
            start = 0
            while line < self.first_line and start < len(chunk):
                start = chunk.find(b"\n", start) + 1 or len(chunk)
                line += 1
            if waiting is not None:
                yield waiting[0]
            waiting = None
            if start < len(chunk):
                block, cut_off, count = self._block(chunk, start, line, wanted, ended)
                waiting = block, cut_off
                line += count
        if waiting is not None:
            block, cut_off = waiting
            if cut_off:
                log.dropped("last row, cut off", block.lines[-1:], damaged=False)
                faults = tuple(fault for fault in block.faults if fault.row < len(block.values) - 1)
                block = Block(block.values[:-1], block.lines[:-1], faults)
            elif not ended:
                log.note("the last line has no end; if the file was cut off there, its last number may be short")
            yield block

    def _block(
        self, chunk: bytes, start: int, line: int, wanted: Sequence[int], ended: bool
    ) -> tuple[Block, bool, int]:
        """The rows of a chunk from `start` on, whether the last of them looks cut off, and how many lines they are."""
        values, kind = read_lines(chunk, start, self.delimiter, self.decimal, wanted, (self._physical, self.width))
        faults, short = dict[int, str](), False
        for k in np.flatnonzero(kind >= 0).tolist():
            end = chunk.find(b"\n", kind[k])
            text = _text(chunk[kind[k] : len(chunk) if end < 0 else end]).strip()
            if not text or text.startswith(COMMENTS):
                kind[k] = BLANK
                continue
            fault, values[k], short = self._row(text, line + k, wanted)
            if fault is not None:
                faults[k] = fault
        lines = np.arange(line, line + len(kind))
        keep = kind != BLANK
        if not keep.all():
            values, lines = values[keep], lines[keep]
        rows = np.cumsum(keep) - 1
        last_is_faulty = bool(faults) and rows[max(faults)] == len(values) - 1
        told = tuple(Fault(int(rows[k]), line + k, what) for k, what in faults.items())
        return Block(values, lines, told), last_is_faulty and (short or not ended), len(kind)

    def _row(self, text: str, number: int, wanted: Sequence[int]) -> tuple[str | None, list[float], bool]:
        """What is wrong with a row, its numbers, and whether it has too few."""
        cells = cells_in(text, self.delimiter)
        nothing = [float("nan")] * len(wanted)
        if len(cells) not in (self._physical, self.width):
            return f"line {number} has {len(cells)} entries, {self.width} are needed", nothing, len(cells) < self.width
        values = []
        for k in wanted:
            value = number_in(cells[k], self.decimal)
            if value is None or not np.isfinite(value):
                said = f"'{cells[k][:40]!r}'".replace("''", "'").replace("'\"", '"') if cells[k] else "nothing"
                what = f"line {number}, {self.title(k)}: {said} is not a finite number"
                if _CLOCK.search(cells[k]):
                    what += ", but a time of day; write it in seconds, or give rate_hz in a mapping"
                return what, nothing, False
            values.append(value)
        return None, values, False
