"""Tables as loggers of many makers write them: units, times and joints are read as they are meant, or asked for."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.errors import DataError

ROWS = 200
T = np.arange(ROWS) / 100.0
Q = np.sin(np.outer(T, [2.0, 3.0]))
TAU = np.cos(np.outer(T, [5.0, 1.0]))


def table(names, *columns, beneath="", before="", delimiter=","):
    rows = np.column_stack(columns)
    lines = [before + delimiter.join(names), *([beneath] if beneath else [])]
    return "\n".join([*lines, *(delimiter.join(map(repr, row)) for row in rows.tolist())]) + "\n"


def load(tmp_path, text, mapping=None, robot="two_link", **options):
    path = tmp_path / "run.csv"
    path.write_text(text)
    if mapping is not None:
        (tmp_path / "map.yaml").write_text(mapping)
        mapping = tmp_path / "map.yaml"
    return sy.load_recording(path, sy.load_robot(robot) if robot else None, mapping, **options)


def refusal(tmp_path, *arguments, **options):
    with pytest.raises(DataError) as caught:
        load(tmp_path, *arguments, **options)
    return str(caught.value)


def is_the_run(run, qd=False):
    assert np.allclose(run.t - run.t[0], T, atol=1e-6)
    assert np.allclose(run.q, Q, atol=1e-12)
    assert np.allclose(run.tau, TAU, atol=1e-12)
    assert (run.qd is not None) == qd
    assert not qd or np.allclose(run.qd, 2 * Q, atol=1e-12)


@pytest.mark.parametrize(
    ("velocity", "torque"),
    [
        ("vel_{}_deg/s", "torque_{}_N_m"),
        ("qd{}_deg_per_s", "effort_{}_Nm"),
        ("dq_{} [deg/s]", "tau_{} (N·m)"),
        ("velocity {} deg_s", "eff_{}"),
    ],
)
def test_units_at_the_end_of_names_are_obeyed(tmp_path, velocity, torque):
    names = ["time", *(f.format(k) for f in ("pos_{}_deg", velocity, torque) for k in (1, 2))]
    is_the_run(load(tmp_path, table(names, T, np.degrees(Q), np.degrees(2 * Q), TAU)), qd=True)


def test_accelerations_with_their_unit_are_not_taken_for_joint_2(tmp_path):
    names = ["time", "q1", "q2", "acc_1_rad/s2", "acc_2_rad/s2", "tau1", "tau2"]
    assert np.array_equal(load(tmp_path, table(names, T, Q, 3 * Q, TAU)).qdd, 3 * Q)


@pytest.mark.parametrize("repair", [False, True])
def test_a_row_of_units_beneath_the_header_is_obeyed(tmp_path, repair):
    names = ["time", "q1", "q2", "tau1", "tau2"]
    text = table(names, 1e3 * T, np.degrees(Q), TAU, beneath="[ms],[deg],[deg],[Nm],[Nm]")
    is_the_run(load(tmp_path, text, repair=repair))
    mapped = "{q: {columns: [q1, q2]}, tau: {columns: [tau1, tau2]}, time: {column: time}}"
    is_the_run(load(tmp_path, text, mapped, repair=repair))
    assert "no unit 'gon' of q" in refusal(tmp_path, text.replace("deg", "gon"), repair=repair)


@pytest.mark.parametrize(("names", "said"), [(("A", "1 2"), "A1 … A2"), (("joint_", "a b"), "joint_a … joint_b")])
def test_joints_that_a_header_counts_are_the_robots_in_order(tmp_path, names, said):
    joints = [names[0] + k for k in names[1].split()]
    titles = ["time", *(f"{joint}_pos" for joint in joints), *(f"torque_{joint}" for joint in reversed(joints))]
    run = load(tmp_path, table(titles, T, Q, TAU[:, ::-1]))
    is_the_run(run)
    assert any(said in note for note in run.about["notes"])
    assert load(tmp_path, table(titles, T, Q, TAU[:, ::-1]), robot=None).joints == tuple(joints)
    skipped = table(["time", "A1_pos", "A3_pos", "A1_tau", "A3_tau"], T, Q, TAU)
    assert "no joint 'joint1'" in refusal(tmp_path, skipped)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_dates_are_read_by_their_size(tmp_path, unit):
    scale = {"ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    text = table(["timestamp", "q1", "q2", "tau1", "tau2"], (1.7e9 + T) * scale, Q, TAU)
    run = load(tmp_path, text)
    is_the_run(run)
    assert run.about["notes"] == [f"time is read as {unit} since 1970"]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_clock_that_cannot_be_in_seconds_is_asked_for_its_unit(tmp_path, unit):
    scale = {"ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    names = ["time", "q1", "q2", "tau1", "tau2"]
    text = table(names, T * scale, Q, TAU)
    message = refusal(tmp_path, text, repair=True)
    assert f"if it counts {unit}" in message
    assert "\n" not in message
    is_the_run(load(tmp_path, text, f"time: {{column: time, unit: {unit}}}"))
    is_the_run(load(tmp_path, text.replace("time", f"time_{unit}", 1)))
    is_the_run(load(tmp_path, text.replace("time", f"stamp [{unit}]", 1), "time: {column: stamp}"))
    slow = load(tmp_path, text.replace("time", "time [s]", 1))
    assert np.allclose(slow.t, T * scale)
    assert "write it in seconds" in refusal(tmp_path, table(names, T * 1e-6, Q, TAU))


def test_a_mapping_that_names_columns_does_not_hide_their_units(tmp_path):
    names = ["time", "a [deg]", "b [deg]", "c [A]", "d [A]"]
    text = table(names, T, np.degrees(Q), TAU / 0.5)
    columns = "{{q: {{columns: [a, b]}}, tau: {{columns: [c, d]{}}}}}"
    assert "gain" in refusal(tmp_path, text, columns.format(""))
    is_the_run(load(tmp_path, text, columns.format(", unit: A, gain: 0.5")))
    radians = "{q: {columns: [a, b], unit: rad}, tau: {columns: [c, d], unit: A, gain: 0.5}}"
    assert np.allclose(load(tmp_path, text, radians).q, np.degrees(Q))


def test_what_stands_before_the_header_is_said_with_how_to_skip_it(tmp_path):
    names = ["time", "q1", "q2", "tau1", "tau2"]
    text = table(names, T, Q, TAU, before="Robot log\nSerial;17\n\n")
    assert "table: {skip_rows: 3}" in refusal(tmp_path, text)
    is_the_run(load(tmp_path, text, "table: {skip_rows: 3}"))


def test_times_of_day_are_told_from_faulty_numbers(tmp_path):
    text = "time,q1,q2,tau1,tau2\n" + "".join(f"2026-03-01T10:00:{k:02d}.5,1,2,3,{k}\n" for k in range(50))
    assert "a time of day; write it in seconds, or give rate_hz" in refusal(tmp_path, text)


def test_joints_that_were_not_recorded_are_named_with_the_remedy(tmp_path):
    (tmp_path / "run.csv").write_text("time,joint1_q,joint1_tau\n0,0.1,1\n0.1,0.2,2\n")
    with pytest.raises(DataError, match=r"no positions of joint2, .* 1 other joints; .*--lock joint2="):
        sy.load_recording(tmp_path / "run.csv", sy.load_robot("two_link"))
