"""A recording as a stream of blocks, so that a log of any length can be read in little memory."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .blocks import Array, Block, Log, one_line
from .clock import seconds_of
from .plan import Plan, converted
from .recording import Recording

MOST_FAULTS = 0.5  # of the rows; more is another kind of file, not a damaged one


class RecordingStream:
    """The blocks of one recording, in time; iterate as often as needed.

    `about` says what is known of the source, and after a whole pass what was dropped or repaired in it.
    """

    def __init__(self, plan: Plan, about: dict[str, Any], repair: bool, where: str, notes: Sequence[str] = ()) -> None:
        self._plan, self._about, self._repair, self._where = plan, about, repair, where
        self._notes = tuple(notes)  # from before the first row
        self._log = Log(list(notes))

    @property
    def joints(self) -> tuple[str, ...]:
        return self._plan.joints

    @property
    def about(self) -> dict[str, Any]:
        about = dict(self._about)
        about["repairs"] = self._log.repairs
        if self._log.notes:
            about["notes"] = list(self._log.notes)
        return about

    def __iter__(self) -> Iterator[Recording]:
        self._log = Log(list(self._notes))
        try:
            yield from self._recordings()
        except DataError as error:
            raise DataError(f"{self._where}: {one_line(error)}") from None
        except MemoryError:
            raise DataError(f"{self._where}: too large for this machine's memory") from None
        except OSError as error:
            raise DataError(f"{self._where} cannot be read: {one_line(error.strerror or error)}") from None

    def _recordings(self) -> Iterator[Recording]:
        row, kept, last, scale = 0, 0, None, self._plan.time_scale
        for block in self._plan.blocks(self._log):
            if not len(block.values):
                continue
            if scale is None:
                scale = self._seconds(block)
            t = self._times(block, row, scale)
            row += len(t)
            keep = self._good(block)
            keep &= self._advancing(block, t, keep, last)
            if not keep.all():
                block = Block(block.values[keep], block.lines[keep])
                t = t[keep]
            if not len(t):
                continue
            last = (t[-1], block.values[-1])
            kept += len(t)
            yield self._recording(block, t)
        if kept < 2:
            dropped = f", {self._log.rows_dropped} dropped" if self._log.rows_dropped else ""
            raise DataError(f"{kept} rows{dropped}; a recording needs at least 2")
        if self._log.rows_damaged > MOST_FAULTS * row:
            what = "; ".join(self._log.repairs)
            raise DataError(f"most of its rows would have to go ({what}); give a mapping, or mend the file")

    def _seconds(self, block: Block) -> float:
        """What turns the column of times into seconds, by its numbers."""
        t = block.values[:, self._plan.slots["time"].start]
        t = t[np.isfinite(t)]
        scale, said = seconds_of(t) if len(t) else (1.0, None)
        if said is not None:
            self._log.note(said)
        return scale

    def _times(self, block: Block, row: int, scale: float) -> Array:
        plan = self._plan
        if plan.rate_hz is not None:
            return (row + np.arange(len(block.values))) / plan.rate_hz
        with np.errstate(over="ignore"):
            return block.values[:, plan.slots["time"].start] * scale

    def _good(self, block: Block) -> NDArray:
        """Rows without faults; a fault is an error unless rows may be repaired."""
        good = np.ones(len(block.values), dtype=bool)
        if not block.faults:
            return good
        if not self._repair:
            raise DataError(f"{block.faults[0].what}; mend the row, or drop such rows (repair)")
        bad = sorted({fault.row for fault in block.faults})
        good[bad] = False
        self._log.dropped("rows with an entry that is no finite number, or with too few or too many", block.lines[bad])
        return good

    def _advancing(self, block: Block, t: Array, keep: NDArray, last: tuple[float, Array] | None) -> NDArray:
        """Rows whose time lies after that of every row before."""
        advancing = np.ones(len(t), dtype=bool)
        rows = np.flatnonzero(keep)
        if not rows.size:
            return advancing
        before = -np.inf if last is None else last[0]
        times = t[rows]
        highest = np.maximum.accumulate(np.concatenate([[before], times[:-1]]))
        late = rows[times <= highest]
        if not late.size:
            return advancing
        values = block.values
        previous = dict(zip(rows[1:].tolist(), rows[:-1].tolist(), strict=True))
        same: list[int] = []
        others: list[int] = []
        for k in late.tolist():
            earlier = values[previous[k]] if k in previous else (last[1] if last is not None else None)
            (same if earlier is not None and np.array_equal(values[k], earlier) else others).append(k)
        if others and not self._repair:
            k = others[0]
            limit = float(highest[rows.tolist().index(k)])
            how = "stands still" if t[k] == limit else "goes back"
            raise DataError(
                f"{self._plan.pieces[0].source.row_word} {block.lines[k]}: time {how}, {limit:.9g} -> {t[k]:.9g} s; "
                "sort the rows, drop such rows (repair), or give rate_hz in a mapping where the clock is too coarse"
            )
        self._log.dropped("rows that repeat the row before", block.lines[same], damaged=False)
        self._log.dropped("rows whose time does not advance", block.lines[others])
        advancing[late] = False
        return advancing

    def _recording(self, block: Block, t: Array) -> Recording:
        plan = self._plan
        channels = {name: converted(plan, name, block.values) for name in plan.conversions}
        for name, x in (*channels.items(), ("time", t[:, None])):
            if not np.isfinite(x).all():
                row, joint = (int(k[0]) for k in np.nonzero(~np.isfinite(x)))
                raise DataError(
                    f"line {block.lines[row]}: {name} of joint {joint + 1} is too large to be converted; mend the row"
                )
        more = {}
        for name, slot in plan.slots.items():
            if name.startswith("more."):
                x = block.values[:, slot]
                bare = name.removeprefix("more.")
                more[bare] = x[:, 0] if bare in plan.flat else x
        return Recording(
            t, channels["q"], channels["tau"], channels.get("qd"), channels.get("qdd"), plan.joints, more, self._about
        )
