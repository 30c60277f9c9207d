"""Live joint states: a robot's `sensor_msgs/JointState` as samples in the robot's order, and the same sent out."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, OptionError, unknown_name
from .dds import Network, connect, cyclone, dds_name, messages, quality

Array = NDArray[np.float64]
TOPIC = "/joint_states"
# Samples that wait to be taken: 20 s at 1 kHz. A reliable reader that kept all could hold up the robot.
DEPTH = 20_000
_AT_ONCE = 1000
_LOOK_S = 0.1  # how soon a wait sees that it is to stop, s
_NS = 1_000_000_000


class LiveSample(NamedTuple):
    """One joint state: seconds since the first one, its stamp in ns, and the joints in the order asked for."""

    t: float
    stamp: int
    q: Array  # (n,)
    qd: Array | None  # where the robot sends velocities
    tau: Array | None  # where the robot sends efforts


@dataclass
class Counts:
    """What came in, and why some of it was not used."""

    received: int = 0
    used: int = 0
    lost: int = 0  # by DDS's own count: sent and never received
    overflows: int = 0  # times that more samples waited than are kept
    other_joints: int = 0  # messages without the joints asked for, as a gripper's
    incomplete: int = 0  # messages with too few numbers for their names
    not_advancing: int = 0  # stamps at or before the previous one
    without_stamp: int = 0  # the sender's clock was used instead
    publishers: set[int] = field(default_factory=set)

    def as_dict(self) -> dict[str, int]:
        return {**self.__dict__, "publishers": len(self.publishers)}


class JointStateReader:
    """Receives joint states from a running robot; use it in a `with`, and iterate over `samples()`.

    `joints` are the names as published, in the order wanted; none: all joints of the first message, in its order.
    A message with other joints only, as a gripper sends on the same topic, is counted and left out. `stop()` may be
    called from another thread or a signal handler.
    """

    def __init__(
        self,
        joints: Sequence[str] = (),
        topic: str = TOPIC,
        network: Network | None = None,
        best_effort: bool = False,
    ) -> None:
        dds = cyclone()
        if len(set(joints)) != len(joints):
            raise OptionError(f"a joint is asked for twice: {', '.join(joints)}")
        self.joints = tuple(joints)
        self.counts = Counts()
        self.network = Network() if network is None else network
        self.topic = dds_name(topic)
        self._asked = bool(joints)
        self._seen: set[str] = set()
        self._columns: dict[tuple[str, ...], NDArray[np.intp] | None] = {}
        self._stamped: bool | None = None  # whether the robot fills in its stamps; known from the first message
        self._first: int | None = None
        self._last: int | None = None
        self._stopped = Event()
        self._incompatible = False
        self._best_effort = best_effort
        self._connection = connect(self.network)

        # The counts come by the listener: it is called for what goes wrong only, so it costs nothing otherwise.
        def lost(_: Any, status: Any) -> None:
            self.counts.lost = int(status.total_count)

        def incompatible(_: Any, status: Any) -> None:
            self._incompatible = True

        listener = dds.core.Listener(on_sample_lost=lost, on_requested_incompatible_qos=incompatible)
        self._reader = dds.sub.DataReader(
            self._connection.participant, self._connection.topic(topic), quality(DEPTH, best_effort), listener
        )
        states = dds.core.ViewState.Any | dds.core.InstanceState.Any | dds.core.SampleState.Any
        self._ready = dds.core.ReadCondition(self._reader, states)
        self._waiting = dds.core.WaitSet(self._connection.participant)
        self._waiting.attach(self._ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the topic; what is still waiting is dropped."""
        self.stop()
        for name in ("_waiting", "_ready", "_reader", "_connection"):
            self.__dict__.pop(name, None)  # Cyclone deletes an entity with its last reference

    def stop(self) -> None:
        """Let `samples()` come to its end."""
        self._stopped.set()

    def _columns_of(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        """Where the joints asked for are in a message; None where they are not."""
        if not self.joints:
            self.joints = names
        if names not in self._columns:
            self._seen.update(names)
            found = set(self.joints) <= set(names)
            self._columns[names] = np.array([names.index(name) for name in self.joints]) if found else None
        return self._columns[names]

    def _stamp(self, message: Any) -> int:
        """The header's stamp in ns; the sender's clock where the first message leaves it empty, for one clock it is."""
        stamp = int(message.header.stamp.sec) * _NS + int(message.header.stamp.nanosec)
        if self._stamped is None:
            self._stamped = stamp != 0
        if self._stamped:
            return stamp
        self.counts.without_stamp += 1
        return int(message.sample_info.source_timestamp)

    def _sample(self, message: Any) -> LiveSample | None:
        counts = self.counts
        counts.received += 1
        columns = self._columns_of(tuple(message.name))
        if columns is None:
            counts.other_joints += 1
            return None
        width = len(message.name)
        rows = [np.asarray(values, dtype=np.float64) for values in (message.position, message.velocity, message.effort)]
        if not width or len(rows[0]) != width or any(len(row) not in (0, width) for row in rows):
            counts.incomplete += 1
            return None
        stamp = self._stamp(message)
        if self._last is not None and stamp <= self._last:
            counts.not_advancing += 1
            return None
        self._first = stamp if self._first is None else self._first
        self._last = stamp
        counts.used += 1
        counts.publishers.add(message.sample_info.publication_handle)
        q, qd, tau = (row[columns] if len(row) else None for row in rows)
        return LiveSample((stamp - self._first) / _NS, stamp, q, qd, tau)  # type: ignore[arg-type]

    def take(self, timeout: float = _LOOK_S) -> list[LiveSample]:
        """What has arrived, oldest first; waits up to `timeout` seconds for the first of it."""
        dds = cyclone()
        self._waiting.wait(dds.util.duration(seconds=timeout))
        taken: list[LiveSample] = []
        came = 0
        while batch := self._reader.take(_AT_ONCE):
            came += len(batch)
            valid = (message for message in batch if message.sample_info.valid_data)
            taken += [sample for message in valid if (sample := self._sample(message)) is not None]
            if len(batch) < _AT_ONCE:
                break
        self.counts.overflows += came >= DEPTH
        return taken

    def samples(self, seconds: float | None = None, patience: float | None = 10.0) -> Iterator[LiveSample]:
        """Samples as they come, until `seconds` of them by their stamps, `stop()`, or `patience` seconds of silence.

        Silence before the first sample is an error that says what was found instead.
        """
        heard = time.monotonic()
        while not self._stopped.is_set():
            batch = self.take()
            for sample in batch:
                yield sample
                if seconds is not None and sample.t >= seconds * (1 - 1e-9):
                    return
            now = time.monotonic()
            if batch:
                heard = now
            elif patience is not None and now - heard > patience:
                if self.counts.used:
                    return
                raise DataError(self._why_nothing(patience))

    def _why_nothing(self, seconds: float) -> str:
        where = f"topic {self.topic.removeprefix('rt')} in DDS domain {self.network.domain}"
        if self._incompatible and not self._best_effort:
            return f"the robot on {where} sends best effort, and reliable was asked for; ask for best effort"
        if self.counts.other_joints and self._asked:
            missing = next(name for name in self.joints if name not in self._seen)
            return (
                f"{self.counts.other_joints} messages on {where}: {unknown_name('joint', missing, sorted(self._seen))}"
            )
        if self.counts.incomplete:
            return f"{self.counts.incomplete} messages on {where} have fewer positions than names; mend the publisher"
        if self.counts.received:
            return f"{self.counts.received} messages on {where}, none of them usable"
        found = len(self._reader.get_matched_publications())
        who = f"{found} publisher{'s' * (found != 1)} there, which say nothing" if found else "nobody publishes there"
        return (
            f"no joint state in {seconds:g} s on {where}: {who}; check that the robot runs, its ROS_DOMAIN_ID and "
            "topic, and that both use one network interface"
        )


class JointStateWriter:
    """Publishes joint states as a robot does."""

    def __init__(
        self, joints: Sequence[str], topic: str = TOPIC, network: Network | None = None, depth: int = 1000
    ) -> None:
        dds = cyclone()
        self.joints = list(joints)
        self._connection = connect(Network() if network is None else network)
        self._writer = dds.pub.DataWriter(self._connection.participant, self._connection.topic(topic), quality(depth))
        kinds = messages()
        self._Message, self._Header, self._Time = kinds.JointState, kinds.Header, kinds.Time

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait until every reader has what was sent, at most two seconds, and leave the topic."""
        if "_writer" not in self.__dict__:
            return
        dds = cyclone()
        # When time is up, Cyclone 11 stumbles over its own exception's name; a reader that hangs is no error here.
        with suppress(AttributeError, dds.core.DDSException):
            if self.readers():
                self._writer.wait_for_acks(dds.util.duration(seconds=2))
        del self._writer, self._connection

    def readers(self) -> int:
        """How many listen."""
        return len(self._writer.get_matched_subscriptions())

    def wait_for_reader(self, seconds: float, stop: Event | None = None) -> bool:
        """Wait until somebody listens."""
        end = time.monotonic() + seconds
        while not self.readers():
            if time.monotonic() > end or (stop is not None and stop.is_set()):
                return False
            time.sleep(0.02)
        return True

    def write(self, stamp: int, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> None:
        """Send one joint state with its stamp in ns."""
        header = self._Header(self._Time(*divmod(stamp, _NS)), "")
        position, velocity, effort = (np.asarray(x, dtype=np.float64).tolist() for x in (q, qd, tau))
        self._writer.write(self._Message(header, self.joints, position, velocity, effort))
