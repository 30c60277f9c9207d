"""A sidecar is read in full or refused with file, line, fault and remedy; never anything else."""

import pickle
import re
from contextlib import suppress

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.errors import ModelError
from steelyard.robot.sidecar import MAX_CHARACTERS, Gear, JointLimits, Sidecar, parse_sidecar, read_sidecar

WHOLE = """
description: an arm
lock: {finger: 0.01}
leave_out: [finger]
home: {shoulder: 0.5, elbow: -1}
limits:
  shoulder: {position: [-2, 2], velocity: 1.5, acceleration: 10, torque: 87, torque_rate: 1000}
gear:
  joints: [shoulder, elbow]
  ratio: [100, -50]
  coupling: [{motor_of: elbow, joint: shoulder, ratio: 25}]
"""


def refusal(text):
    with pytest.raises(ModelError) as caught:
        parse_sidecar(text, "arm.steelyard.yaml")
    message = str(caught.value)
    assert message.startswith("arm.steelyard.yaml")
    assert "\n" not in message
    return message


def test_every_field_is_read():
    facts = parse_sidecar(WHOLE, "here")
    shoulder = JointLimits(position=(-2, 2), velocity=1.5, acceleration=10, torque=87, torque_rate=1000)
    assert (facts.description, facts.lock, facts.leave_out) == ("an arm", {"finger": 0.01}, ("finger",))
    assert facts.home == {"shoulder": 0.5, "elbow": -1.0}
    assert facts.limits == {"shoulder": shoulder}
    assert facts.gear.joints == ("shoulder", "elbow")


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "---\n", "null"])
def test_no_fields_make_an_empty_sidecar(text):
    assert parse_sidecar(text, "here") == Sidecar()


def test_no_file_makes_an_empty_sidecar(tmp_path):
    assert read_sidecar(tmp_path / "arm.xml") == Sidecar()


@pytest.mark.parametrize("model", ["arm.xml", "arm.urdf", "arm"])
def test_sidecar_stands_beside_its_model(tmp_path, model):
    (tmp_path / "arm.steelyard.yaml").write_text(WHOLE, encoding="utf-8")
    assert read_sidecar(tmp_path / model) == read_sidecar(str(tmp_path / model)) == parse_sidecar(WHOLE, "here")


def test_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "arm.steelyard.yaml").write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert read_sidecar(tmp_path / "arm.xml") == parse_sidecar(WHOLE, "here")


def test_sidecar_cannot_be_changed_and_travels_to_other_processes():
    facts = parse_sidecar(WHOLE, "here")
    with pytest.raises(ValueError, match="frozen"):
        facts.description = "another"
    assert pickle.loads(pickle.dumps(facts)) == facts  # noqa: S301 - our own bytes; campaigns send robots to workers


def test_gear_loses_no_power():
    gear = parse_sidecar(WHOLE, "here").gear
    joint_speed, motor_torque = np.array([0.3, -0.7]), np.array([1.1, 0.2])
    motor_speed = gear.position_matrix @ joint_speed
    assert gear.position_matrix.tolist() == [[100, 0], [25, -50]]
    assert np.isclose(motor_torque @ motor_speed, (gear.torque_matrix @ motor_torque) @ joint_speed)
    assert gear.zero.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("limit: {}", 1, "no field 'limit'; did you mean 'limits'?"),
        ("\nlimits:\n  a:\n    velocty: 1", 4, "no field 'velocty'; did you mean 'velocity'?"),
        ("limits:\n  a: {velocity: -1}", 2, "limits.a.velocity is -1, not above zero"),
        ("limits:\n  a: {torque: 0}", 2, "limits.a.torque is 0, not above zero"),
        ("limits:\n  a: {torque: .inf}", 2, "limits.a.torque is inf, not a finite number"),
        ("limits:\n  a: {position: [2, 1]}", 2, "lower limit 2 is not below upper limit 1"),
        ("limits:\n  a: {position: [1]}", 2, "limits.a.position.1 is missing"),
        ("limits: {a: 3}", 1, "limits.a is 3, not a mapping"),
        ("home:\n  a: .nan", 2, "home.a is nan, not a finite number"),
        ("home:\n  a: 1e3", 2, "home.a is '1e3', not a number; write it without quotes, and an exponent as in 1.0e+3"),
        ("home: {a: true}", 1, "home.a is True, not a number"),
        ("home:", 1, "home is empty, not a mapping; write it like home:"),
        ("home:\n  on: 1", 2, "YAML does not read 'on' as a name; put the name in quotes"),
        ("home:\n  7: 1", 2, "YAML does not read '7' as a name"),
        ("home:\n  ? [a]\n  : 1", 2, "YAML does not read a list or a mapping as a name"),
        ("home: {'': 1}", 1, "an empty name"),
        ("home:\n  a: 1\n  a: 2", 3, "'a' is given twice"),
        ("lock: [a]", 1, "lock is a list, not a mapping"),
        ("lock: {a: 1" + "0" * 400 + "}", 1, "lock.a is a huge number"),
        ("leave_out: a", 1, "leave_out is 'a', not a list"),
        ("leave_out: [a, b, a]", 1, "'a' is named twice"),
        ("description: [x]", 1, "description is a list, not text"),
        ("home: &h {a: 1}\nlock: *h", 1, "an alias"),
        ("home: {a: 1", 1, "not YAML"),
        ("a: !!python/object/apply:os.getcwd []", 1, "not YAML"),
        ("gear: {ratio: [1]}", 1, "gear.joints is missing"),
        ("gear: {joints: [a, b], ratio: [1]}", 1, "ratio has 1 numbers for 2 joints"),
        ("gear: {joints: [a], ratio: [0]}", 1, "0 is not a gear ratio"),
        ("gear: {joints: [a], ratio: [1], teeth: 3}", 1, "no field 'teeth'; valid: joints, ratio, coupling"),
        ("gear: {joints: [a], ratio: [1], coupling: [{motor_of: a, joint: b, ratio: 1}]}", 1, "'b'; valid: a"),
        ("gear: {joints: [a], ratio: [1], coupling: [{motor_of: a, joint: a, ratio: 1}]}", 1, "coupled with itself"),
    ],
)
def test_fault_is_told_with_its_line(text, line, fault):
    message = refusal(text)
    assert fault in message
    assert message.startswith(f"arm.steelyard.yaml, line {line}:")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1, 2]", "holds a list, not fields"),
        ("fast", "holds 'fast', not fields"),
        ("#" * (MAX_CHARACTERS + 1), f"{MAX_CHARACTERS + 1} characters"),
        ("[" * 2000, "nested too deeply"),
        ("home: {a: 5}\nlimits: {a: {position: [0, 1]}}", "home of 'a' is 5, outside its limits 0 … 1"),
        ("day: 2024-13-45", "a value cannot be read"),
        ("home: {a: " + "9" * 5000 + "}", "a value cannot be read"),
        ("\0", "save it as plain UTF-8 text"),
    ],
)
def test_fault_of_the_whole_file_is_told(text, fault):
    assert fault in refusal(text)


def test_motors_that_do_not_determine_the_joints_are_refused():
    turns = "{motor_of: a, joint: b, ratio: 2}, {motor_of: b, joint: a, ratio: 2}"
    assert "singular" in refusal(f"gear: {{joints: [a, b], ratio: [2, 2], coupling: [{turns}]}}")


def test_other_faults_are_counted():
    assert refusal("home: {a: x, b: y, c: z}").endswith("(and 2 more)")


def test_long_values_are_cut():
    assert len(refusal(f"home: {{a: {'x' * 5000}}}")) < 300


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"description: \xe9"])
def test_file_that_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "arm.steelyard.yaml"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=re.escape(str(path))):
        read_sidecar(tmp_path / "arm.xml")


def test_huge_file_and_folder_are_refused(tmp_path):
    (tmp_path / "big.steelyard.yaml").write_bytes(b"#" * 10_000_000)
    (tmp_path / "dir.steelyard.yaml").mkdir()
    with pytest.raises(ModelError, match="at most 100000"):
        read_sidecar(tmp_path / "big.xml")
    with pytest.raises(ModelError, match="cannot be read"):
        read_sidecar(tmp_path / "dir.xml")


words = st.sampled_from([*Sidecar.model_fields, *JointLimits.model_fields, *Gear.model_fields, "a", "b", "", "1e3"])
scalars = words | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4)
values = st.recursive(
    scalars | st.dates(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.integers(), inner, max_size=4),
    max_leaves=12,
)
marks = st.sampled_from(
    [*"[]{}:,-?&*!|>'\"#%@ \n\t", "!!", "<<", "a", "lock: ", "limits: ", ".nan", "0x", "1_0", "=", "~"]
)


def only_model_errors(text):
    with suppress(ModelError):
        assert isinstance(parse_sidecar(text, "here"), Sidecar)


@settings(max_examples=150, deadline=None)
@given(st.lists(marks, max_size=20).map("".join) | st.text(max_size=60))
@example("a: !!int ''")
@example("a: !!timestamp x")
@example("a: !!bool x")
@example("a: !!float ''")
@example("a: !!binary é")
@example("? [a]\n: b")
@example("x: &a [*a]")
@example("!!set {a}")
def test_any_text_is_read_or_refused(text):
    only_model_errors(text)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(words, values, max_size=4))
def test_any_fields_are_read_or_refused(fields):
    only_model_errors(yaml.safe_dump(fields))
