"""`capture`: a running robot's joint states to a file, sample by sample, so that nothing is lost when work is cut off.

While it runs, samples go to `OUTPUT.part`: one line of JSON that says what it is, then a row a sample, its stamp
(int64, ns) and q, qd, tau (float64, little endian; nan where the robot sends nothing).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, OptionError
from ..files import checked_output
from .live import JointStateReader, LiveSample
from .recording import SUFFIXES, Recording, save_recording

FORMAT = "steelyard capture 1"
_GAP = 1.5  # median steps from sample to sample beyond which samples are missing


@dataclass(frozen=True)
class Gaps:
    """How even the stamps are: the rate by the median step, and where samples are missing."""

    rate_hz: float
    largest_s: float
    count: int
    missing: int  # samples that would have filled the gaps
    first_at_s: float | None


def gaps_in(t: NDArray[np.float64]) -> Gaps:
    """Gaps in increasing times."""
    if len(t) < 2:
        return Gaps(float("nan"), float("nan"), 0, 0, None)
    step = np.diff(t)
    usual = float(np.median(step))
    wide = np.flatnonzero(step > _GAP * usual)
    missing = int(np.round(step[wide] / usual - 1).sum())
    return Gaps(1 / usual, float(step.max()), len(wide), missing, float(t[wide[0]]) if len(wide) else None)


def _row_type(n: int) -> np.dtype:
    return np.dtype([("stamp", "<i8"), ("values", "<f8", (3 * n,))])


def part_of(output: Path) -> Path:
    """Where the samples for an output are kept while it is being recorded."""
    return output.with_name(output.name + ".part")


def _packed(sample: LiveSample) -> bytes:
    nothing = np.full(len(sample.q), np.nan)
    rows = [nothing if x is None else x for x in (sample.q, sample.qd, sample.tau)]
    return np.int64(sample.stamp).astype("<i8").tobytes() + np.concatenate(rows).astype("<f8").tobytes()


def _header(joints: Sequence[str], about: dict[str, Any]) -> bytes:
    return json.dumps({"format": FORMAT, "joints": list(joints), "about": about}).encode() + b"\n"


def read_part(path: str | Path) -> Recording:
    """The samples in a `.part` file that an interrupted recording left; half a row at its end is dropped."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with path.open("rb") as file:
        line = file.readline(1_000_000)
        rest = file.read()
    try:
        header = json.loads(line)
        joints, about = tuple(str(name) for name in header["joints"]), dict(header["about"])
        right = header["format"] == FORMAT and len(joints) > 0
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise DataError(f"{path} is no interrupted recording of Steelyard's: it lacks format '{FORMAT}'")
    kind = _row_type(len(joints))
    rows = np.frombuffer(rest[: len(rest) // kind.itemsize * kind.itemsize], dtype=kind)
    if not len(rows):
        raise DataError(f"{path} has no samples")
    if (np.diff(rows["stamp"]) <= 0).any():
        raise DataError(f"{path}: stamps do not advance at row {int((np.diff(rows['stamp']) <= 0).argmax()) + 2}")
    t = (rows["stamp"] - rows["stamp"][0]) / 1e9
    q, qd, tau = np.split(rows["values"], 3, axis=1)
    speed = None if np.isnan(qd).all() else qd
    return Recording(t, q, tau, speed, None, joints, {}, {**about, "first_stamp_ns": int(rows["stamp"][0])})


def capture(
    reader: JointStateReader,
    output: str | Path,
    joints: Sequence[str] = (),
    seconds: float | None = None,
    patience: float | None = 10.0,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[Recording, Gaps]:
    """Record what a reader receives, to a file, until it ends by `seconds`, silence or `reader.stop()`.

    `joints` are the names in the recording, where they are others than those published. What had come before an
    error is in the `.part` file, which `read_part` reads.
    """
    output = checked_output(output, SUFFIXES)
    part = part_of(output)
    about: dict[str, Any] = {
        "source": "live joint states",
        "topic": reader.topic.removeprefix("rt"),
        "domain": reader.network.domain,
        "published_joints": [],
    }
    try:
        file = part.open("xb", buffering=0)
    except FileExistsError:
        raise OptionError(
            f"{part} is there, left by an interrupted recording or made by one that runs; save it with "
            f"`steelyard record --recover {part} --output OTHER.npz`, or remove it"
        ) from None
    except OSError as error:
        raise OptionError(f"{part} cannot be written: {error.strerror or error}") from None
    count = 0
    try:
        for sample in reader.samples(seconds, patience):
            if not count:
                if sample.tau is None:
                    raise DataError(
                        f"the robot on {about['topic']} sends no effort (joint torque), and without it nothing can "
                        "be identified; switch it on in the robot's driver"
                    )
                about["published_joints"] = list(reader.joints)
                file.write(_header(joints or reader.joints, about))
            file.write(_packed(sample))
            count += 1
            if progress is not None:
                progress(count, sample.t)
    except OSError as error:
        raise OptionError(
            f"{part} cannot be written after {count} samples: {error.strerror or error}; make room, then "
            f"`steelyard record --recover {part} --output OTHER.npz` saves them"
        ) from None
    finally:
        file.close()
        if not count:
            part.unlink()
    if not count:
        raise DataError("stopped before the first sample; nothing was recorded")
    recording = read_part(part)
    gaps = gaps_in(recording.t)
    about = {**recording.about, "received": reader.counts.as_dict()}
    recording = Recording(
        recording.t, recording.q, recording.tau, recording.qd, None, recording.joints, recording.more, about
    )
    try:
        save_recording(recording, output)
    except OptionError as error:
        raise OptionError(
            f"{error}; the samples are in {part}: `steelyard record --recover {part} --output OTHER`"
        ) from None
    part.unlink()
    return recording, gaps
