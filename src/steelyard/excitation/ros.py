"""Trajectories as ROS `trajectory_msgs/JointTrajectory`: the message as YAML, or in a rosbag2.

Times are whole nanoseconds there; every other number keeps all its digits.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..errors import DataError
from .splines import Sampled

TOPIC = "/joint_space_trajectory"
MESSAGE = "trajectory_msgs/msg/JointTrajectory"
# The message's names of q, qd, qdd, tau
QUANTITIES = {"q": "positions", "qd": "velocities", "qdd": "accelerations", "tau": "effort"}
DEEPEST = 8  # how deep the message nests its lists and mappings, and some
# libyaml where PyYAML was built with it: ten times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _tree(text: str) -> Any:
    """The first document of a YAML text as lists, mappings and plain texts, without aliases.

    Built from the parser's events: its own builder recurses, and a few thousand brackets break the interpreter; aliases
    let a short text grow without bound.
    """
    root: list[Any] = []
    stack: list[Any] = [root]
    keys: list[str | None] = [None]

    def add(value: Any) -> None:
        if isinstance(stack[-1], list):
            stack[-1].append(value)
        elif keys[-1] is not None:
            stack[-1][keys[-1]] = value
            keys[-1] = None
        elif isinstance(value, str):
            keys[-1] = value
        else:
            raise DataError("a key that is a list or a mapping; this is no JointTrajectory")

    def line() -> str:
        return f"line {event.start_mark.line + 1}" if event.start_mark else "somewhere"

    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise DataError(f"{line()}: an alias (*); write the numbers out")
        if isinstance(event, yaml.ScalarEvent):
            add(event.value)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            value: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            add(value)
            stack.append(value)
            keys.append(None)
            if len(stack) > DEEPEST:
                raise DataError(f"{line()}: nested too deeply for a JointTrajectory")
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            stack.pop()
            keys.pop()
        elif isinstance(event, yaml.DocumentEndEvent):
            break
    return root[0] if root else None


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{what} is not a mapping; a JointTrajectory has joint_names and points")
    return value


def _items(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{what} is not a list; a JointTrajectory has joint_names and points")
    return value


def _rows(what: str, rows: Sequence[Sequence[Any]], n: int) -> Any:
    """The rows of one quantity as a table; None where no point has any."""
    if not any(len(row) for row in rows):
        return None
    for k, row in enumerate(rows):
        if len(row) != n:
            raise DataError(f"point {k + 1} has {len(row)} {what} for {n} joints")
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: {error}") from None


def _samples(names: Sequence[str], times: Any, rows: dict[str, list[Any]]) -> Sampled:
    if not times:
        raise DataError("no points; a trajectory has at least 2")
    n = len(names) or len(rows["q"][0])
    tables = {name: _rows(QUANTITIES[name], values, n) for name, values in rows.items()}
    if tables["q"] is None:
        raise DataError("the points have no positions")
    if tables["qd"] is None:
        tables["qdd"] = None  # a message may have them alone; without velocities they say too little
    return Sampled(times, **tables, joints=tuple(names))


def _time(sec: float, nanosec: float) -> float:
    # One division rounds once: an even grid comes back to the last bit.
    return (sec * 1e9 + nanosec) / 1e9


def _seconds(value: Any, k: int) -> float:
    stamp = _mapping(value, f"time_from_start of point {k + 1}")
    try:
        return _time(float(stamp.get("sec", stamp.get("secs", 0))), float(stamp.get("nanosec", stamp.get("nsecs", 0))))
    except (TypeError, ValueError):
        raise DataError(f"time_from_start of point {k + 1} is not {{sec, nanosec}} in whole numbers") from None


def _stamps(t: Any) -> Iterable[tuple[int, int]]:
    """Times as seconds and nanoseconds."""
    if t[-1] >= 2**31:
        raise DataError(f"{t[-1]:g} s do not fit into a ROS duration; shorten the trajectory")
    whole = np.floor(t)
    ticks = whole.astype(np.int64) * 10**9 + np.rint((t - whole) * 1e9).astype(np.int64)
    if np.diff(ticks).min() < 1:
        raise DataError("two samples within a nanosecond, the step of ROS times; lower the rate")
    return zip((ticks // 10**9).tolist(), (ticks % 10**9).tolist(), strict=True)


def _number(x: float) -> str:
    """All digits, and a point before an exponent: YAML takes 1e-05 for a text."""
    text = repr(x)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def to_yaml(samples: Sampled) -> str:
    """The samples as a JointTrajectory in YAML."""
    names = yaml.safe_dump(list(samples.joints), default_flow_style=True, width=2**30, allow_unicode=True).strip()
    lines = ["header:", "  stamp: {sec: 0, nanosec: 0}", "  frame_id: ''", f"joint_names: {names}", "points:"]
    rows = [[[]] * samples.t.size if getattr(samples, name) is None else getattr(samples, name) for name in QUANTITIES]
    for (sec, nanosec), *point in zip(_stamps(samples.t), *rows, strict=True):
        mark = "-"
        for what, row in zip(QUANTITIES.values(), point, strict=True):
            lines.append(f"{mark} {what}: [{', '.join(_number(float(x)) for x in row)}]")
            mark = " "
        lines.append(f"  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}")
    return "\n".join(lines) + "\n"


def from_yaml(text: str) -> Sampled:
    """The samples in a JointTrajectory in YAML."""
    try:
        message = _mapping(_tree(text), "the file")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataError(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    names = _items(message.get("joint_names", []), "joint_names")
    if any(not isinstance(name, str) for name in names):
        raise DataError("joint_names is not a list of names")
    points = [_mapping(point, f"point {k + 1}") for k, point in enumerate(_items(message.get("points", []), "points"))]
    times = [_seconds(point.get("time_from_start"), k) for k, point in enumerate(points)]
    rows = {name: [_items(point.get(what, []), what) for point in points] for name, what in QUANTITIES.items()}
    return _samples(names, times, rows)


def write_bag(folder: Path, samples: Sampled) -> None:
    """A new rosbag2 folder with the samples as one message."""
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types: dict[str, Any] = dict(store.types)
    point_of, duration_of = types["trajectory_msgs/msg/JointTrajectoryPoint"], types["builtin_interfaces/msg/Duration"]
    rows = [
        [np.zeros(0)] * samples.t.size if getattr(samples, name) is None else getattr(samples, name)
        for name in QUANTITIES
    ]
    points = [
        point_of(**dict(zip(QUANTITIES.values(), point, strict=True)), time_from_start=duration_of(*stamp))
        for stamp, *point in zip(_stamps(samples.t), *rows, strict=True)
    ]
    header = types["std_msgs/msg/Header"](stamp=types["builtin_interfaces/msg/Time"](0, 0), frame_id="")
    message = types[MESSAGE](header=header, joint_names=list(samples.joints), points=points)
    with Writer(folder, version=8) as writer:
        connection = writer.add_connection(TOPIC, MESSAGE, typestore=store)
        writer.write(connection, 0, store.serialize_cdr(message, MESSAGE))


def _messages_in(path: Path) -> list[tuple[str, Any]]:
    """Topic and message of every JointTrajectory in a bag."""
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    # Whatever SQLite and the decoder make of damaged bytes, to the user it is one thing: a damaged bag.
    try:
        with Reader(path) as reader:
            chosen = [c for c in reader.connections if c.msgtype == MESSAGE]
            if not chosen:
                return []
            return [
                (connection.topic, store.deserialize_cdr(raw, MESSAGE))
                for connection, _, raw in reader.messages(connections=chosen)
            ]
    except Exception as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"not a whole rosbag2: {what}") from None


def read_bag(path: Path) -> Sampled:
    """The one JointTrajectory of a bag, folder or storage file; on `TOPIC` where several topics have one."""
    messages = _messages_in(path)
    if len({topic for topic, _ in messages}) > 1:
        messages = [(topic, message) for topic, message in messages if topic == TOPIC] or messages
    if len(messages) != 1:
        topics = ", ".join(sorted({topic for topic, _ in messages})[:20]) or "no topic"
        raise DataError(f"{len(messages)} JointTrajectory messages on {topics}; 1 is needed, best on {TOPIC}")
    message = messages[0][1]
    times = [_time(p.time_from_start.sec, p.time_from_start.nanosec) for p in message.points]
    rows = {name: [getattr(p, what) for p in message.points] for name, what in QUANTITIES.items()}
    return _samples(message.joint_names, times, rows)
