"""Joint states over DDS: ROS 2's bytes, none lost, and nothing lost when work is cut off."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pytest

import steelyard as sy
from steelyard.data.capture import capture, gaps_in, part_of, read_part
from steelyard.data.dds import Network, dds_name, messages
from steelyard.data.live import JointStateReader, JointStateWriter
from steelyard.data.recording import read_npz
from steelyard.excitation.exchange import write_trajectory
from steelyard.excitation.trajectory import Fourier

_numbers = count()


@pytest.fixture
def network():
    """A domain of its own on loopback, so that tests in other processes are not heard; skipped where DDS cannot run."""
    pytest.importorskip("cyclonedds", reason="live data need cyclonedds: pip install 'steelyard[live]'")
    own = Network(10 + (7 * os.getpid() + next(_numbers)) % 200, "lo")
    try:
        with JointStateWriter(["a"], f"/probe_{os.getpid()}", own):
            pass
    except sy.OptionError as error:
        pytest.skip(f"DDS does not run on loopback here: {error}")
    return own


@pytest.fixture
def topic():
    return f"/test_{os.getpid()}_{next(_numbers)}/joint_states"


def start(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "steelyard", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )  # fmt: skip


def where(network, topic):
    return ["--domain", network.domain, "--interface", network.interface, "--topic", topic]


def send(writer, stamps, names=None, effort=True):
    if names is not None:
        writer.joints = list(names)
    n = len(writer.joints)
    for k in stamps:
        row = k + np.arange(n)
        writer.write(int(k * 1e6), row, 10 + row, 20 + row if effort else [])


def test_the_bytes_are_those_of_a_ros_message():
    pytest.importorskip("cyclonedds")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    kinds, ours = store.types, messages()
    names, rows = ["joint_a", "b", "Gelenk äö"], [np.array([1.5, -2.0, 3e-300]), np.array([]), np.array([np.nan, 0, 1])]
    stamp = kinds["builtin_interfaces/msg/Time"](1_700_000_000, 987_654_321)
    header = kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="base")
    theirs = kinds["sensor_msgs/msg/JointState"](
        header=header, name=names, position=rows[0], velocity=rows[1], effort=rows[2]
    )
    message = ours.JointState(
        ours.Header(ours.Time(1_700_000_000, 987_654_321), "base"), names, *(row.tolist() for row in rows)
    )
    expected = bytes(store.serialize_cdr(theirs, "sensor_msgs/msg/JointState"))
    assert message.serialize(use_version_2=False) == expected
    back = ours.JointState.deserialize(expected)
    assert back.name == names
    np.testing.assert_array_equal(back.effort, rows[2])


def test_messages_that_a_real_ros_2_recorded_go_through_unchanged(real_data):
    pytest.importorskip("cyclonedds")
    path = real_data / "rosbags" / "ur10_exciting_trajectory" / "ur10_exciting_trajectory.db3"
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as bag:
        raw = [data for (data,) in bag.execute("select data from messages")]
    assert len(raw) == 3441
    kind = messages().JointState
    assert all(kind.deserialize(data).serialize(use_version_2=False) == data for data in raw)


def test_topic_and_type_have_the_names_that_ros_gives_them(network):
    from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
    from cyclonedds.util import duration

    with JointStateWriter(["a"], "/panda/joint_states", network) as writer:
        reader = BuiltinDataReader(writer._connection.participant, BuiltinTopicDcpsPublication)
        found = {(sample.topic_name, sample.type_name) for sample in reader.take_iter(timeout=duration(seconds=0.5))}
    assert ("rt/panda/joint_states", "sensor_msgs::msg::dds_::JointState_") in found
    assert dds_name("joint_states") == dds_name("/joint_states") == dds_name("rt/joint_states") == "rt/joint_states"
    for wrong in ("", "/", "a b", "1a", "a//b", "ä"):
        with pytest.raises(sy.OptionError, match="topic"):
            dds_name(wrong)


def test_joints_come_by_name_in_the_order_asked_for_and_others_are_left_out(network, topic):
    with JointStateReader(["c", "a"], topic, network) as reader, JointStateWriter("abc", topic, network) as writer:
        assert writer.wait_for_reader(5)
        send(writer, [1, 2])
        send(writer, [3], ["finger"])
        send(writer, [4, 4, 3], "abc")  # the same stamp again, and an earlier one
        send(writer, [5], "cba")
        samples = list(reader.samples(patience=0.5))
    assert [sample.stamp for sample in samples] == [1_000_000, 2_000_000, 4_000_000, 5_000_000]
    np.testing.assert_allclose([sample.t for sample in samples], [0, 1e-3, 3e-3, 4e-3])
    np.testing.assert_array_equal([sample.q for sample in samples], [[3, 1], [4, 2], [6, 4], [5, 7]])
    np.testing.assert_array_equal(samples[0].tau, [23, 21])
    counts = reader.counts
    assert (counts.received, counts.used, counts.other_joints, counts.not_advancing, counts.lost) == (7, 4, 1, 2, 0)


def test_a_reader_can_be_stopped_while_it_waits(network, topic):
    with JointStateReader([], topic, network) as reader, JointStateWriter("ab", topic, network) as writer:
        assert writer.wait_for_reader(5)
        send(writer, [1, 2, 3])
        seen = []
        for sample in reader.samples(patience=None):
            seen.append(sample)
            if len(seen) == 3:
                reader.stop()
        assert reader.joints == ("a", "b")
        assert len(seen) == 3


def test_silence_and_wrong_names_are_told_apart(network, topic, tmp_path):
    with JointStateReader(["a"], topic, network) as reader, pytest.raises(sy.DataError, match="nobody publishes"):
        list(reader.samples(patience=0.2))
    with (
        JointStateReader(["joint1"], topic, network) as reader,
        JointStateWriter(["joint_1"], topic, network) as writer,
    ):
        assert writer.wait_for_reader(5)
        send(writer, [1, 2])
        with pytest.raises(sy.DataError, match="did you mean 'joint_1'"):
            list(reader.samples(patience=0.3))
    with JointStateReader([], topic, network) as reader, JointStateWriter(["a"], topic, network) as writer:
        assert writer.wait_for_reader(5)
        send(writer, [1, 2], effort=False)
        with pytest.raises(sy.DataError, match="no effort"):
            capture(reader, tmp_path / "run.npz", patience=0.3)
    assert not list(tmp_path.iterdir())


def test_a_robot_that_sends_best_effort_is_named_as_such_and_heard_when_asked_for(network, topic):
    from cyclonedds.pub import DataWriter

    from steelyard.data.dds import connect, quality

    connection = connect(network)
    robot = JointStateWriter("ab", topic, network)
    robot._writer = DataWriter(connection.participant, connection.topic(topic), quality(10, best_effort=True))
    with robot, JointStateReader([], topic, network) as reader, pytest.raises(sy.DataError, match="best effort"):
        list(reader.samples(patience=0.5))
    robot = JointStateWriter("ab", topic, network)
    robot._writer = DataWriter(connection.participant, connection.topic(topic), quality(10, best_effort=True))
    with JointStateReader([], topic, network, best_effort=True) as reader, robot:
        assert robot.wait_for_reader(5)
        send(robot, [1, 2, 3])
        assert len(list(reader.samples(patience=0.5))) == 3


def test_a_robot_that_leaves_ends_nothing_and_another_may_go_on(network, topic):
    with JointStateReader([], topic, network) as reader:
        for first in (1, 11):
            with JointStateWriter("ab", topic, network) as writer:
                assert writer.wait_for_reader(5)
                send(writer, range(first, first + 3))
        samples = list(reader.samples(patience=0.5))
    assert [round(sample.t * 1e3) for sample in samples] == [0, 1, 2, 10, 11, 12]
    assert len(reader.counts.publishers) == 2


def test_a_stamp_of_nothing_is_the_senders_time(network, topic):
    with JointStateReader([], topic, network) as reader, JointStateWriter(["a"], topic, network) as writer:
        assert writer.wait_for_reader(5)
        for _ in range(3):
            writer.write(0, [1.0], [0.0], [0.0])
            time.sleep(0.01)
        samples = list(reader.samples(patience=0.3))
    assert len(samples) == reader.counts.without_stamp == 3
    assert abs(samples[0].stamp - time.time_ns()) < 60e9
    assert (np.diff([sample.t for sample in samples]) >= 0.009).all()


def test_missing_samples_are_seen_in_the_stamps():
    t = np.delete(np.arange(100) / 500, [20, 21, 50])
    gaps = gaps_in(t)
    assert (gaps.count, gaps.missing) == (2, 3)
    assert gaps.first_at_s == pytest.approx(19 / 500)
    assert gaps.largest_s == pytest.approx(3 / 500)
    assert gaps.rate_hz == pytest.approx(500)


def test_two_processes_at_1_khz_on_loopback_lose_nothing(network, topic, tmp_path):
    robot = sy.load_robot("panda")
    b = 0.2 * np.ones((7, 1))
    write_trajectory(tmp_path / "traj.npz", Fourier(2.0, robot.home, b, b, robot.dof_names))
    seconds = ["--seconds", 2]
    record = start("record", "-m", "panda", "-o", tmp_path / "run.npz", "--patience", 60, "--json", *seconds,
                   *where(network, topic))  # fmt: skip
    rig = start("rig", "panda", "-t", tmp_path / "traj.npz", "-o", tmp_path / "rig.npz", "--publish", "--wait", 60,
                "--publish-rate", 1000, "--torque-noise", 0.1, "--json", *seconds, *where(network, topic))  # fmt: skip
    moved, said = rig.communicate(timeout=100), record.communicate(timeout=100)
    assert rig.returncode == 0, moved[1]
    assert record.returncode == 0, said[1]
    report = json.loads(said[0])
    sent, got = read_npz(tmp_path / "rig.npz"), read_npz(tmp_path / "run.npz")
    assert report["samples"] == report["received"]["received"] == len(sent) == 2001
    assert report["received"]["lost"] == report["gaps"]["missing"] == 0
    for name in ("q", "qd", "tau"):
        np.testing.assert_array_equal(getattr(got, name), getattr(sent, name))
    np.testing.assert_allclose(got.t, sent.t, atol=1e-9)
    assert not part_of(tmp_path / "run.npz").exists()


def test_ctrl_c_saves_and_a_killed_recording_can_be_recovered(network, topic, tmp_path):
    saved, killed = tmp_path / "saved.npz", tmp_path / "killed.npz"
    processes = [start("record", "-o", path, "--patience", 60, *where(network, topic)) for path in (saved, killed)]
    with JointStateWriter("ab", topic, network) as writer:
        end = time.monotonic() + 60
        while writer.readers() < 2 and time.monotonic() < end:
            time.sleep(0.05)
        for k in range(1, 301):
            send(writer, [k])
            time.sleep(0.001)
        time.sleep(0.5)
        processes[0].send_signal(signal.SIGINT)
        processes[1].kill()
        out, err = processes[0].communicate(timeout=30)
        processes[1].communicate(timeout=30)
    assert processes[0].returncode == 0, err
    assert "300 samples" in out
    assert "no gaps" in out
    assert len(read_npz(saved)) == 300
    assert not killed.exists()
    part = part_of(killed)
    with part.open("ab") as file:
        file.write(b"half a row")
    again = start("record", "-o", killed, *where(network, topic))
    assert "--recover" in again.communicate(timeout=30)[1]
    rescued = start("record", "--recover", part, "-o", tmp_path / "rescued.npz")
    assert "300 samples" in rescued.communicate(timeout=30)[0]
    for name in ("t", "q", "qd", "tau"):
        np.testing.assert_array_equal(getattr(read_npz(tmp_path / "rescued.npz"), name), getattr(read_npz(saved), name))


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"[1]\n", b"\xff\x00\n", b'{"format": "steelyard capture 1", "joints": [], "about": {}}\n'],
)
def test_a_file_that_is_no_interrupted_recording_is_refused(content, tmp_path):
    (tmp_path / "x.part").write_bytes(content)
    with pytest.raises(sy.DataError, match="lacks format"):
        read_part(tmp_path / "x.part")


def test_without_the_package_there_is_the_line_that_installs_it(monkeypatch):
    from steelyard.data import dds

    monkeypatch.setitem(sys.modules, "cyclonedds", None)
    dds.cyclone.cache_clear()
    try:
        with pytest.raises(sy.OptionError, match=r"pip install 'steelyard\[live\]'"):
            JointStateReader(["a"])
    finally:
        dds.cyclone.cache_clear()


def test_where_robots_are_looked_for_is_checked(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "42")
    assert Network().domain == 42
    assert Network(3).configuration() is None
    assert 'name="eth0"' in Network(3, "eth0").configuration()
    monkeypatch.setenv("ROS_DOMAIN_ID", "many")
    with pytest.raises(sy.OptionError, match="ROS_DOMAIN_ID"):
        Network()
    for domain, interface in ((-1, None), (233, None), (0, '"/><x'), (0, "")):
        with pytest.raises(sy.OptionError):
            Network(domain, interface)
