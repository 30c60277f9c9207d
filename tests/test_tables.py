"""Tables in text become recordings by the names or the number of their columns, or are refused with line and column."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.errors import DataError


def written(tmp_path, text, name="run.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load(tmp_path, text, robot=None, mapping=None, **options):
    return sy.load_recording(written(tmp_path, text), robot, mapping, **options)


def refusal(tmp_path, text, *arguments, **options):
    with pytest.raises(DataError) as caught:
        load(tmp_path, text, *arguments, **options)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "run.csv"))
    assert "\n" not in message
    return message


def recording(rng, n=3, rows=500, **more):
    q, qd, qdd, tau = rng.standard_normal((4, rows, n))
    return sy.Recording(np.arange(rows) * 1e-3, q, tau, qd, qdd, **more)


def same(one, other):
    for name in ("t", "q", "tau", "qd", "qdd"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        assert a is None or np.array_equal(a, b), name
    assert one.joints == other.joints
    assert one.more.keys() == other.more.keys()
    for name, value in one.more.items():
        assert np.array_equal(value, other.more[name]), name


@pytest.mark.parametrize("suffix", ["npz", "csv"])
@pytest.mark.parametrize("n", [1, 3, 7])
def test_what_is_saved_is_read_back_to_the_last_bit(tmp_path, rng, suffix, n):
    more = {"q_d": rng.standard_normal((500, n)), "temperature": rng.standard_normal(500)}
    joints = tuple(f"axis, {k}" for k in range(n))
    run = recording(rng, n, joints=joints, more=more, about={"robot": "arm", "source": "simulation"})
    back = sy.load_recording(sy.save_recording(run, tmp_path / f"run.{suffix}"))
    same(run, back)
    assert back.about["robot"] == "arm"
    assert back.about["earlier"] == {"source": "simulation"}
    assert back.about["source"] == f"run.{suffix}"
    assert len(back.about["sha256"]) == 64
    assert back.about["repairs"] == []


@pytest.mark.parametrize(
    "text",
    [
        "time,q0,q1,tau0,tau1\n0,1,2,3,4\n1,5,6,7,8\n",
        "t;pos_1;pos_2;torque_1;torque_2\n0;1;2;3;4\n1;5;6;7;8\n",
        "time q_0 q_1 effort_0 effort_1\n0 1 2 3 4\n  1   5 6   7 8  \n",
        "Time\tq[0]\tq[1]\ttau[0]\ttau[1]\n0\t1\t2\t3\t4\n1\t5\t6\t7\t8",
        "time;q0;q1;tau0;tau1\n0,0;1,0;2,0;3;4\n1;5;6;7;8\n",
        "joint2_effort,joint1_effort,joint1_pos,joint2_pos,timestamp\n4,3,1,2,0\n8,7,5,6,1\n",
        "time_ms,q0 [rad],q1 [rad],tau0 [N·m],tau1 [Nm]\n0,1,2,3,4\n1000,5,6,7,8\n",
        "# time q0 q1 tau0 tau1\n0 1 2 3 4\n1 5 6 7 8\n",
        "%time,field.position0,field.position1,field.effort0,field.effort1\n0,1,2,3,4\n1000000000,5,6,7,8\n",
        "0,1,2,3,4\n1,5,6,7,8\n",
        "time,q0,q1,tau0,tau1,\n0,1,2,3,4,\n1,5,6,7,8,\n",
        "time,q0,q1,tau0,tau1\r\n\r\n0,1,2,3,4\r\n# a remark\r\n1,5,6,7,8\r\n",
        "time,q0,q1,tau0,tau1\r0,1,2,3,4\r1,5,6,7,8\r",
        '"time","q0","q1","tau0","tau1"\n"0","1","2","3","4"\n"1","5","6","7","8"\n',
        "time,q0,q1,tau0,tau1\n0,1,2,3,4\n1,5,6,7,8\n".encode("utf-16"),
        "\ufefftime,q0,q1,tau0,tau1,remark\n0,1,2,3,4,\n1,5,6,7,8,bumped\n",
        "time,q0,q1,tau0,tau1\n0,1,2,3,4\n0,1,2,3,4\n1,5,6,7,8\n1.5,3",
        "/t,/joint_states/joint1/position,/joint_states/joint2/position,/joint_states/joint1/effort,"
        "/joint_states/joint2/effort\n0,1,2,3,4\n1,5,6,7,8\n",
    ],
)
def test_tables_of_many_kinds_are_read(tmp_path, text):
    run = load(tmp_path, text, sy.load_robot("two_link"))
    assert run.t.tolist() == [0, 1]
    assert run.q.tolist() == [[1, 2], [5, 6]]
    assert run.tau.tolist() == [[3, 4], [7, 8]]
    assert run.joints == ("joint1", "joint2")


def test_columns_go_to_the_robots_joints_by_name_and_what_is_left_is_said(tmp_path):
    text = "time,finger.q,joint2.q,joint1.q,finger.tau,joint1.tau,joint2.tau,grip\n0,9,2,1,9,3,4,9\n1,9,6,5,9,7,8,9\n"
    run = load(tmp_path, text, sy.load_robot("two_link"), None)
    assert run.q.tolist() == [[1, 2], [5, 6]]
    assert run.tau.tolist() == [[3, 4], [7, 8]]
    assert "grip" in run.about["unused_columns"]


@pytest.mark.parametrize("pattern", ["arm_joint{}_{}", "{1}_arm_joint{0}", "arm/joint{}/{}", "{1} ARM-Joint{0}"])
def test_a_prefix_of_all_joints_does_not_hide_them(tmp_path, pattern):
    names = [pattern.format(k, word) for word in ("effort", "position") for k in (2, 1)]
    text = ",".join(["time", *names]) + "\n0,4,3,2,1\n1,8,7,6,5\n"
    run = load(tmp_path, text, sy.load_robot("two_link"))
    assert run.q.tolist() == [[1, 2], [5, 6]]
    assert run.tau.tolist() == [[3, 4], [7, 8]]


@pytest.mark.parametrize(("width", "n", "rates"), [(15, 7, ()), (22, 7, ("qd",)), (29, 7, ("qd", "qdd"))])
def test_width_says_what_the_columns_are_where_the_robot_is_known(tmp_path, rng, width, n, rates):
    table = rng.standard_normal((10, width))
    table[:, 0] = np.arange(10)
    text = "\n".join(",".join(map(repr, row)) for row in table.tolist()) + "\n"
    run = load(tmp_path, text, sy.load_robot("panda"))
    for k, name in enumerate(("q", *rates, "tau")):
        assert np.array_equal(getattr(run, name), table[:, 1 + k * n : 1 + (k + 1) * n])
    assert (run.qdd is None) == ("qdd" not in rates)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no rows"),
        ("time,q0,tau0\n", "0 rows; a recording needs at least 2"),
        ("time,q0,tau0\n0,1,2\n", "1 rows; a recording needs at least 2"),
        ("time,q0,tau0\n0,1,2\n1,x,2\n2,1,2\n", "line 3, column 'q0': 'x' is not a finite number"),
        ("time,q0,tau0\n0,1,2\n1,,2\n2,1,2\n", "line 3, column 'q0': nothing is not a finite number"),
        ("time,q0,tau0\n0,1,2\n1,nan,2\n2,1,2\n", "line 3, column 'q0': 'nan' is not"),
        ("time,q0,tau0\n0,1,2\n1,True,2\n2,1,2\n", "line 3, column 'q0': 'True' is not"),
        ("time,q0,tau0\n0,1,2\n1,1_0,2\n2,1,2\n", "line 3, column 'q0': '1_0' is not"),
        ("time,q0,tau0\n0,1,2\n1,1e999,2\n2,1,2\n", "line 3, column 'q0': '1e999' is not a finite number"),
        ("time,q0,tau0\n0,1,2\n1,2\n2,1,2\n", "line 3 has 2 entries, 3 are needed"),
        ("time,q0,tau0\n0,1,2\n1,2,3,4\n2,1,2\n", "line 3 has 4 entries, 3 are needed"),
        ("time,q0,tau0,x\n0,1,2\n1,2,3\n", "the header has 4 names, the rows below have 3 entries"),
        ("time,q0,tau0\n0,1,2\n1,2,3\n.5,1,2\n", "line 4: time goes back, 1 -> 0.5 s"),
        ("time,q0,tau0\n0,1,2\n0,2,3\n1,1,2\n", "line 3: time stands still"),
        ("time,q0,q1\n0,1,2\n1,2,3\n", "no torques in this table; its columns are time, q0, q1"),
        ("q0,tau0\n0,1\n1,2\n", "no time in this table"),
        ("time,q0,q1,dq0,qd0,tau0,tau1\n0,1,2,3,4,5,6\n", "columns 'dq0' and 'qd0' both look like qd of joint 0"),
        ("time,q0,q1,q3,tau0,tau1,tau3\n0,1,2,3,4,5,6\n", "do not number the joints one by one"),
        ("time,q0,q1,tau0\n0,1,2,3\n", "1 columns of tau and 2 of q are not of the same joints"),
        ("time,q0,current0\n0,1,2\n", "give the drive gains in a mapping"),
        ("time,q0 [furlong],tau0\n0,1,2\n", "no unit 'furlong' of q"),
        ("0,1,2,3,4\n1,5,6,7,8\n", "in 2 ways (time, q, tau of 2; time, q, qd, qdd, tau of 1 joints)"),
        ("0,1,2,3,4,5\n1,5,6,7,8,9\n", "in 0 ways"),
        (b"\x00\x01\x02\xff" * 100, "NUL bytes"),
        ("time,q0,tau0\n0,1,2\n".encode("utf-16-le"), "NUL bytes"),
    ],
)
def test_fault_is_told_with_its_place(tmp_path, text, fault):
    assert fault in refusal(tmp_path, text)


def test_repair_drops_faulty_rows_and_says_so(tmp_path):
    text = "time,q0,tau0\n0,1,2\n1,x,2\n2,1\n3,1,3\n2.5,1,4\n4,nan,4\n5,2,6\n7,5,7\n8,5,7\n9,5,7\n"
    run = load(tmp_path, text, repair=True)
    assert run.t.tolist() == [0, 3, 5, 7, 8, 9]
    assert run.tau[:, 0].tolist() == [2, 3, 6, 7, 7, 7]
    said = " ".join(run.about["repairs"])
    assert "too few or too many: 3, at 3 … 7" in said
    assert "time does not advance: 1, at 6" in said


def test_more_damage_than_sense_is_refused_even_with_repair(tmp_path):
    assert "most of its rows" in refusal(tmp_path, "time,q0,tau0\n0,1,2\n1,1,2\n2,x,1\n3,x,1\n4,x,1\n", repair=True)


def test_a_last_row_that_was_cut_off_is_dropped_and_said(tmp_path):
    for tail in ("2", "2,1.", "2,1.5,", "2,1,2e", "2,1\n"):
        run = load(tmp_path, "time,q0,tau0\n0,1,2\n1,1,2\n" + tail)
        assert run.t.tolist() == [0, 1]
        assert run.about["repairs"] == ["dropped last row, cut off: 1, at 4"]


def test_a_last_line_without_end_is_kept_and_said(tmp_path):
    run = load(tmp_path, "time,q0,tau0\n0,1,2\n1,1,2\n2,1,2")
    assert run.t.tolist() == [0, 1, 2]
    assert "the last line has no end" in run.about["notes"][0]


def test_blocks_of_a_stream_are_the_whole_recording(tmp_path, rng):
    run = recording(rng, 7, 30_000)
    path = sy.save_recording(run, tmp_path / "run.csv")
    stream = sy.open_recording(path)
    blocks = list(stream)
    assert len(blocks) > 3
    assert np.array_equal(np.concatenate([block.tau for block in blocks]), run.tau)
    assert sum(len(block) for block in stream) == len(run)
    same(sy.load_recording(path), run)
