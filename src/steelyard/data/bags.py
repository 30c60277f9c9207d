"""ROS bags: rosbag2 (SQLite, MCAP), with metadata.yaml or bare, and ROS 1, all without a ROS install.

Joint states come message by message, so that memory does not grow with the bag. A message may name some of the joints
only; a row is then put together from the messages of all of them, and bears the time of the last.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, unknown_name
from .blocks import CHUNK_BYTES, Block, Fault, Held, Log, checked
from .columns import places_of

STATE, TRAJECTORY = "sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"
SUFFIXES = (".db3", ".mcap", ".bag")
PEEKED = 200  # messages that say which joints there are
_FIELDS = {"q": "position", "qd": "velocity", "tau": "effort"}


def storage_files(folder: Path) -> list[Path]:
    """The bag files in a folder, in the order in which a recorder splits them."""
    found = [path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def bag_files(path: Path) -> list[Path]:
    """The storage files of a bag that is a folder or a file."""
    files = storage_files(path) if path.is_dir() else [path]
    if not files:
        raise DataError(
            f"a folder without a bag ({', '.join(SUFFIXES)}); give a file, or a mapping that names the files in it"
        )
    return files


def _reader(path: Path) -> Any:
    from rosbags import rosbag1, rosbag2

    return rosbag1.Reader(path) if path.suffix.lower() == ".bag" else rosbag2.Reader(path)


_RECOVERY = "`mcap recover` or `sqlite3 bag.db3 .recover` brings back what is whole"


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Whatever SQLite, the index or the decoder make of damaged bytes, to the user it is one thing: a damaged bag."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{where}: not a whole ROS bag: {what}; if its end is missing, {_RECOVERY}") from None


def _decoder(path: Path) -> Any:
    from rosbags.typesys import Stores, get_typestore

    if path.suffix.lower() == ".bag":
        return get_typestore(Stores.ROS1_NOETIC).deserialize_ros1
    return get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr


@dataclass(frozen=True)
class Bag:
    """The parts of a bag, and the topic in it that is read."""

    parts: tuple[Path, ...]  # folders with metadata.yaml, or storage files
    topic: str
    kind: str

    def messages(self) -> Iterator[tuple[int, Any]]:
        """When the bag got each message, in nanoseconds, and the message."""
        for part in self.parts:
            decode = _decoder(part)
            with _damage(part.name), _reader(part) as reader:
                chosen = [c for c in reader.connections if c.topic == self.topic and c.msgtype == self.kind]
                if not chosen:
                    continue
                for connection, received, raw in reader.messages(connections=chosen):
                    yield received, decode(raw, connection.msgtype)


def _parts(path: Path, log: Log) -> tuple[tuple[Path, ...], dict[tuple[str, str], int]]:
    """What to open, and how many messages each topic has, by topic and type."""
    options: list[tuple[Path, ...]] = [(path,)] if path.is_file() or (path / "metadata.yaml").is_file() else []
    if path.is_dir():
        options.append(tuple(bag_files(path)))
    for k, parts in enumerate(options):
        counts: dict[tuple[str, str], int] = {}
        try:
            for part in parts:
                with _damage(part.name), _reader(part) as reader:
                    for c in reader.connections:
                        counts[c.topic, c.msgtype] = counts.get((c.topic, c.msgtype), 0) + int(c.msgcount or 0)
        except DataError as error:
            if k + 1 == len(options):
                raise
            log.note(f"the bag's metadata.yaml is no use ({error}); its storage files were read without it")
            continue
        if (
            k == 0
            and parts[0].suffix.lower() in (".db3", ".mcap")
            and not (parts[0].parent / "metadata.yaml").is_file()
        ):
            log.note("the bag has no metadata.yaml; its storage file was read without it")
        return parts, counts
    raise DataError("no bag in this folder")


def choose(path: Path, topic: str | None, log: Log) -> Bag:
    """The bag and its one topic of joint states, else of a trajectory; `topic` chooses among several."""
    parts, counts = _parts(path, log)
    usable = {key: count for key, count in counts.items() if key[1] in (STATE, TRAJECTORY) and count}
    if topic is not None:
        found = [key for key in usable if key[0].strip("/") == topic.strip("/")]
        if not found:
            raise DataError(unknown_name("topic of joint states", topic[:80], sorted({name for name, _ in usable})))
        return Bag(parts, *found[0])
    for kind in (STATE, TRAJECTORY):
        found = [key for key in usable if key[1] == kind]
        if len(found) > 1:
            listed = ", ".join(f"{name} ({usable[name, kind]} messages)" for name, _ in sorted(found)[:20])
            raise DataError(f"{len(found)} topics have {kind.rpartition('/')[2]}: {listed}; choose one (topic)")
        if found:
            return Bag(parts, *found[0])
    listed = ", ".join(f"{name} ({kind}, {count})" for (name, kind), count in sorted(counts.items())[:20]) or "nothing"
    raise DataError(f"no sensor_msgs/JointState and no trajectory_msgs/JointTrajectory in this bag; it has {listed}")


def _header_time(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


@dataclass(frozen=True, eq=False)
class JointStates:
    """A topic of joint states as a table: time, q, [qd], tau, in the order of `joints`."""

    bag: Bag
    joints: tuple[str, ...]
    fields: tuple[str, ...]
    stamp: str  # header | received
    start: int  # ns
    repair: bool
    names: tuple[str, ...]
    about: dict
    format: str = "bag"
    row_word: str = "message"

    @property
    def width(self) -> int:
        return len(self.names)

    def _row(self, message: Any, places: dict[str, int], into: np.ndarray) -> str | None:
        """Put a message's numbers into a row; what is wrong with it, if anything."""
        n = len(self.joints)
        for k, name in enumerate(self.fields):
            numbers = getattr(message, _FIELDS[name])
            if len(numbers) != len(message.name):
                return f"has {len(numbers)} numbers of {_FIELDS[name]} for {len(message.name)} joints"
            for joint, number in zip(message.name, numbers, strict=True):
                if joint in places:
                    into[k * n + places[joint]] = number
        return None

    def blocks(self, wanted: Sequence[int], log: Log) -> Iterator[Block]:
        n, step = len(self.joints), max(1, CHUNK_BYTES // (64 * self.width))
        places = {joint: k for k, joint in enumerate(self.joints)}
        row, seen = np.full(len(self.fields) * n, np.nan), set[str]()
        rows, lines, faults = list[np.ndarray](), list[int](), list[Fault]()
        first, spread, others, k = 0, 0, 0, 0

        def block() -> Block:
            values = np.array(rows).reshape(len(rows), self.width)
            found = checked(values, np.array(lines, np.int64), self.names, self.row_word)
            told = {fault.row for fault in faults}
            more = [fault for fault in found.faults if fault.row not in told]
            return Block(values[:, list(wanted)], found.lines, tuple(sorted((*faults, *more), key=lambda f: f.row)))

        messages = self.bag.messages()
        while True:
            try:
                received, message = next(messages)
            except StopIteration:
                break
            except DataError as error:
                if not self.repair:
                    raise DataError(f"{error}, after message {k}; keep what is whole by repair") from None
                log.cut(f"the bag is damaged after message {k}; what follows is lost")
                break
            k += 1
            mine = [joint for joint in message.name if joint in places]
            if not mine:
                others += 1
                continue
            time = received if self.stamp == "received" else _header_time(message)
            first = first if seen else time
            fault = self._row(message, places, row)
            if fault is not None:
                faults.append(Fault(len(rows), k, f"message {k} {fault}"))
            seen |= set(mine)
            if len(seen) < n and fault is None:
                continue
            spread = max(spread, abs(time - first))
            rows.append(np.concatenate([[(time - self.start) / 1e9], row]))
            lines.append(k)
            row, seen = np.full_like(row, np.nan), set()
            if len(rows) == step:
                yield block()
                rows, lines, faults = [], [], []
        if others:
            log.note(f"{others} messages name none of the joints and were left out")
        if spread:
            log.note(f"rows are put together from messages of some joints each, up to {spread / 1e6:.3g} ms apart")
        if rows:
            yield block()


def _joints_in(peeked: Sequence[Any], wanted: Sequence[str]) -> tuple[str, ...]:
    """The joints to be read: the robot's where they are known, else those that every message has."""
    sets = list(dict.fromkeys(tuple(message.name) for message in peeked))
    every = list(dict.fromkeys(joint for names in sets for joint in names))
    for names in sets:
        if len(set(names)) < len(names):
            raise DataError(f"a message names a joint twice: {', '.join(names[:20])}")
    if wanted:
        found = places_of(wanted, every)
        if isinstance(found, str):
            raise DataError(
                f"no message has joint '{found}', or they have several; there are {', '.join(every[:40]) or 'none'}; "
                "lock or leave out what is not there, or give the model of this robot"
            )
        return tuple(every[k] for k in found)
    if len({frozenset(names) for names in sets}) > 1:
        listed = "; ".join(", ".join(names[:8]) for names in sets[:4])
        raise DataError(
            f"messages name different joints ({listed}); say which robot it is (--model), or joints in a mapping"
        )
    if not every:
        raise DataError("the messages do not name their joints")
    return tuple(every)


def _states(bag: Bag, wanted: Sequence[str], stamp: str | None, repair: bool, log: Log) -> JointStates:
    peeked, received = list[Any](), list[int]()
    for time, message in bag.messages():
        peeked.append(message)
        received.append(time)
        if len(peeked) == PEEKED:
            break
    if not peeked:
        raise DataError(f"no messages on {bag.topic}")
    joints = _joints_in(peeked, wanted)
    mine = [message for message in peeked if set(joints) & set(message.name)]
    fields = tuple(name for name, field in _FIELDS.items() if all(len(getattr(message, field)) for message in mine))
    for name in ("q", "tau"):
        if name not in fields:
            raise DataError(f"messages on {bag.topic} without {_FIELDS[name]}; positions and efforts are needed")
    stamps = [_header_time(message) for message in peeked]
    chosen = stamp
    if chosen is None:
        chosen = "header" if any(stamps) and len(set(stamps)) > len(stamps) // 2 else "received"
        if chosen == "received":
            log.note("the messages' own stamps are empty or stand still; the time is the bag's own")
    names = ("time", *(f"{field}{k}" for field in fields for k in range(len(joints))))
    start = stamps[0] if chosen == "header" else received[0]
    about = {"topic": bag.topic, "stamp": chosen, "start_ns": start}
    return JointStates(bag, joints, fields, chosen, start, repair, names, about)


def _trajectory(bag: Bag) -> Held:
    """The points of the one trajectory of a bag."""
    messages = [message for _, (_, message) in zip(range(2), bag.messages(), strict=False)]
    if len(messages) != 1:
        raise DataError(f"{len(messages) or 'no'} trajectories on {bag.topic}, perhaps more; 1 is needed")
    message = messages[0]
    n = len(message.joint_names)
    columns = [[(p.time_from_start.sec * 10**9 + p.time_from_start.nanosec) / 1e9 for p in message.points]]
    names = ["time"]
    quantities = {"q": "positions", "qd": "velocities", "qdd": "accelerations", "tau": "effort"}
    for name, field in quantities.items():
        rows = [getattr(point, field) for point in message.points]
        if not any(len(row) for row in rows):
            continue
        for k, row in enumerate(rows):
            if len(row) != n:
                raise DataError(f"point {k + 1} has {len(row)} {field} for {n} joints")
        columns += np.array(rows, dtype=np.float64).T.tolist()
        names += [f"{name}{k}" for k in range(n)]
    about = {"topic": bag.topic, "message": "JointTrajectory"}
    arrays = tuple(np.array(column, dtype=np.float64) for column in columns)
    return Held("bag", tuple(names), arrays, tuple(message.joint_names), about, "point")


def open_bag(
    path: Path, topic: str | None, wanted: Sequence[str], stamp: str | None, repair: bool, log: Log
) -> JointStates | Held:
    """The joint states of a bag as a table, else its trajectory."""
    bag = choose(path, topic, log)
    with _damage(path.name):
        return _trajectory(bag) if bag.kind == TRAJECTORY else _states(bag, wanted, stamp, repair, log)
