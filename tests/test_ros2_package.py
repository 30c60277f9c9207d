"""The ROS 2 package, run against a stand-in: ROS itself cannot be installed where this is tested."""

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from defusedxml import ElementTree

import steelyard as sy
from steelyard.cli.rig import _configured_rate
from steelyard.excitation.exchange import write_trajectory
from steelyard.excitation.trajectory import Fourier

ROOT = Path(__file__).parents[1] / "ros2"
FILES = sorted(ROOT.rglob("*.py"))


class Node:
    """What rclpy's node does for ours: parameters, publishers, a log."""

    def __init__(self, parameters):
        self.given, self.published, self.said = parameters, [], []

    def declare_parameter(self, name, default):
        value = self.given.get(name, default)
        assert type(value) is type(default), f"{name} is {value!r}"  # rclpy refuses another type too
        return SimpleNamespace(value=value)

    def create_publisher(self, kind, topic, qos):
        return SimpleNamespace(publish=lambda message: self.published.append((topic, message)))

    def get_logger(self):
        return SimpleNamespace(**{level: (lambda text, level=level: self.said.append((level, text)))
                                  for level in ("info", "warning", "error")})  # fmt: skip

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=5_000_000_000))

    def destroy_node(self):
        self.said.append(("info", "destroyed"))


def joint_state():
    header = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0), frame_id="")
    return SimpleNamespace(header=header, name=[], position=[], velocity=[], effort=[])


def module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    return made


@pytest.fixture
def ros(monkeypatch):
    """Stand-ins for the modules of ROS; `ros(parameters)` gives the node that rclpy will hand out."""
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [name for name in sys.modules if name == "identification" or name.startswith("identification.")]:
        monkeypatch.delitem(sys.modules, name)

    def recorded(kind):
        return lambda *arguments, **more: SimpleNamespace(kind=kind, arguments=arguments, **more)

    def with_node(parameters):
        node = Node(parameters)
        rclpy = module("rclpy", init=lambda args=None: None, create_node=lambda name: node, spin=lambda node: None,
                       try_shutdown=lambda: None)  # fmt: skip
        stand_ins = {
            "rclpy": rclpy,
            "rclpy.qos": module("rclpy.qos", QoSProfile=recorded("qos"),
                                DurabilityPolicy=SimpleNamespace(TRANSIENT_LOCAL=1)),
            "std_msgs": module("std_msgs"),
            "std_msgs.msg": module("std_msgs.msg", String=SimpleNamespace),
            "sensor_msgs": module("sensor_msgs"),
            "sensor_msgs.msg": module("sensor_msgs.msg", JointState=joint_state),
            "launch": module("launch", LaunchDescription=list),
            "launch.actions": module("launch.actions", DeclareLaunchArgument=recorded("argument")),
            "launch.substitutions": module("launch.substitutions", LaunchConfiguration=recorded("value")),
            "launch_ros": module("launch_ros"),
            "launch_ros.actions": module("launch_ros.actions", Node=recorded("node")),
            "launch_ros.parameter_descriptions": module("x", ParameterValue=recorded("parameter")),
            "ament_index_python": module("ament_index_python"),
            "ament_index_python.packages": module("x", get_package_share_directory=lambda name: str(ROOT)),
        }  # fmt: skip
        for name, stand_in in stand_ins.items():
            monkeypatch.setitem(sys.modules, name, stand_in)
        return node

    return with_node


def loaded(path):
    spec = importlib.util.spec_from_file_location("launched", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_files_are_python(path):
    ast.parse(path.read_text(), feature_version=(3, 11))


def test_without_ros_the_modules_can_still_be_imported():
    nodes = "identification.identification_node, identification.panda_sim_node"
    code = f"import {nodes}, sys; assert 'rclpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_package_setup_and_marker_name_the_same_things(monkeypatch):
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    assert package.find("export/build_type").text == "ament_python"
    name = package.find("name").text
    said = {}
    monkeypatch.setitem(sys.modules, "setuptools", module("setuptools", setup=lambda **more: said.update(more)))
    loaded(ROOT / "setup.py")
    assert said["name"] == name == (ROOT / "resource" / name).name
    assert said["version"] == package.find("version").text
    for _, files in said["data_files"]:
        assert all((ROOT / file).is_file() for file in files)
    assert f"lib/{name}" in (ROOT / "setup.cfg").read_text()
    for script in said["entry_points"]["console_scripts"]:
        where, function = script.split(" = ")[1].split(":")
        tree = ast.parse((ROOT / f"{where.replace('.', '/')}.py").read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_launch_file_has_the_arguments_and_passes_them_to_the_node(ros):
    ros({})
    launched = loaded(ROOT / "launch" / "identification.launch.py")
    *arguments, node = launched.generate_launch_description()
    declared = [argument.arguments[0] for argument in arguments]
    assert {"data_file", "algorithm", "output_file", "model"} <= set(declared)
    assert node.executable == "identification_node"
    assert set(node.parameters[0]) == set(declared)
    assert launched.ALGORITHMS == ["OLS", "WLS", "IRLS", "TLS", "EKF", "ML", "CLOE"]
    simulated = loaded(ROOT / "launch" / "panda_sim.launch.py").generate_launch_description()[-1]
    assert Path(simulated.parameters[0]).is_file()


def test_the_configuration_publishes_at_100_hz_and_the_rig_reads_it(ros):
    ros({})
    path = ROOT / "config" / "panda_sim_node.yaml"
    assert _configured_rate(path)[0] == 100.0
    parameters = yaml.safe_load(path.read_text())["panda_sim_node"]["ros__parameters"]
    defaults = importlib.import_module("identification.panda_sim_node").DEFAULTS
    assert all(type(defaults[name]) is type(value) for name, value in parameters.items())


def test_the_simulated_robot_publishes_what_the_rig_measured(ros, tmp_path):
    robot = sy.load_robot("two_link")
    b = 0.2 * np.ones((2, 1))
    write_trajectory(tmp_path / "traj.npz", Fourier(0.5, robot.home, b, b, robot.dof_names))
    node = ros(
        {"model": "two_link", "trajectory": str(tmp_path / "traj.npz"), "output_file": str(tmp_path / "run.npz")}
    )
    importlib.import_module("identification.panda_sim_node").main()
    messages = [message for topic, message in node.published if topic == "joint_states"]
    recording = sy.data.recording.read_npz(tmp_path / "run.npz")
    assert len(messages) == len(recording) == 51
    assert messages[0].name == list(robot.dof_names)
    np.testing.assert_array_equal([message.effort for message in messages], recording.tau)
    stamps = [message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec for message in messages]
    np.testing.assert_allclose(stamps, 5 + recording.t, atol=1e-9)


def test_a_fault_of_the_users_is_logged_and_is_exit_code_2(ros):
    node = ros({"trajectory": ""})
    with pytest.raises(SystemExit) as left:
        importlib.import_module("identification.panda_sim_node").main()
    assert left.value.code == 2
    assert any(level == "error" and "trajectory is empty" in text for level, text in node.said)


needs_identify = pytest.mark.skipif(not hasattr(sy, "identify"), reason="this build does not identify")


@needs_identify
def test_the_node_identifies_logs_publishes_and_writes(ros, tmp_path):
    robot = sy.load_robot("two_link")
    rng = np.random.default_rng(1)
    path = Fourier(4.0, robot.home, rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), robot.dof_names)
    recording = sy.simulate(robot, path, sample_hz=200)
    table = np.column_stack([recording.t, recording.q, recording.qd, recording.tau])
    header = "time," + ",".join(f"{name}{j}" for name in ("q", "qd", "tau") for j in range(2))
    np.savetxt(tmp_path / "run.csv", table, delimiter=",", header=header, comments="")
    out = tmp_path / "result.yaml"
    node = ros({"data_file": str(tmp_path / "run.csv"), "model": "two_link", "output_file": str(out)})
    importlib.import_module("identification.identification_node").main()
    (topic, message), = node.published  # fmt: skip
    result = json.loads(message.data)
    assert topic == "~/result"
    assert result["algorithm"] == "OLS"
    assert max(result["torque_rmse_held_out"].values()) < 0.05 * np.abs(recording.tau).max()
    assert yaml.safe_load(out.read_text())["method"]
    assert not [text for level, text in node.said if level == "error"]


@needs_identify
def test_the_node_refuses_what_cannot_work(ros, tmp_path):
    for parameters, word in (
        ({}, "data_file is empty"),
        ({"data_file": "x.csv", "algorithm": "GUESS"}, "no algorithm 'GUESS'"),
        ({"data_file": "x.csv", "output_file": "x.txt"}, "output_file"),
        ({"data_file": str(tmp_path / "none.csv")}, "none.csv"),
    ):
        node = ros(parameters)
        with pytest.raises(SystemExit) as left:
            importlib.import_module("identification.identification_node").main()
        assert left.value.code == 2
        assert any(level == "error" and word in text for level, text in node.said)
