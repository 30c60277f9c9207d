"""`steelyard adapt`, `flexible` and `touch`: their answers, and what they refuse."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import main as command_line
from steelyard.cli.main import app
from steelyard.physics.transmission import modes


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*arguments):
    return json.loads(run(*arguments, "--json"))


@pytest.fixture(scope="module")
def contact(tmp_path_factory):
    path = tmp_path_factory.mktemp("touch") / "contact.npz"
    told = as_json("touch", "two_link", "--demo", "--seconds", "40", "--tool", "link2:0.4,0,0", "--output", str(path))
    return path, told


def test_adapt_finds_the_load_and_shows_controllers_that_do_not(tmp_path):
    figure = tmp_path / "learning.svg"
    load = ("--load", "1.5", "--centre", "0.3,0,0")
    told = as_json("adapt", "two_link", *load, "--seconds", "6", "--figure", str(figure))
    (mass,) = told["parameters"]
    assert mass["true"] == pytest.approx(1.5)
    assert abs(mass["error_percent"]) < 2
    assert told["excitation"]["is_excited"]
    assert told["within_dead_zone"]
    errors = told["tracking_error"]
    assert max(errors["adaptive"]["end"]) < 0.1 * max(errors["computed torque, load unknown"]["end"])
    assert "<svg" in figure.read_text()
    shown = run("adapt", "two_link", *load, "--seconds", "2")
    assert "verdict" in shown
    assert "95 % interval" in shown


def test_adapt_says_that_standing_still_shows_too_little(tmp_path):
    told = as_json("adapt", "two_link", "--motion", "still", "--find", "body", "--seconds", "3")
    assert not told["excitation"]["is_excited"]
    assert "not to be trusted" in told["verdict"]
    assert any(one["interval_95"] is None for one in told["parameters"])


def test_adapt_follows_a_trajectory_file_and_believes_a_result(tmp_path):
    robot = sy.load_robot("two_link")
    t = np.arange(0, 3.0, 0.01)
    q = robot.home + 0.3 * (1 - np.cos(np.outer(t, [2 * np.pi / 3 * 2, 2 * np.pi / 3 * 3])))
    rates = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    names = [f"{what}{k}" for what in ("q", "qd", "qdd") for k in range(2)]
    table = tmp_path / "way.csv"
    rows = np.column_stack([t, q, *rates])
    table.write_text("time," + ",".join(names) + "\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist()))
    recording = sy.Recording(t, q, sy.inverse_dynamics(robot, q, *rates), *rates)
    sy.save_result(sy.identify(robot, recording, preprocessing=None), tmp_path / "arm.yaml")
    told = as_json(
        "adapt", "two_link", "--motion", str(table), "--centre", "0.3,0,0", "--result", str(tmp_path / "arm.yaml")
    )
    assert told["seconds"] == pytest.approx(3.0, abs=0.02)
    assert abs(told["parameters"][0]["error_percent"]) < 2


def test_flexible_is_exercise_7_5_by_default(tmp_path):
    figure = tmp_path / "locus.svg"
    told = as_json("flexible", "--figure", str(figure))
    np.testing.assert_allclose(told["modes"], modes(1.0, 0.1, 100.0, 10.0), rtol=1e-6)
    laws = told["laws"]
    assert laws["two time scales"]["stable"]
    assert laws["two time scales"]["least_damping"] > 0.5
    assert not laws["slow part alone"]["stable"]
    assert "ran away" in laws["slow part alone"]["step"]["ran_away"]
    assert laws["as exercise 7.5 prints it"]["least_damping"] < 0.1
    # Its first order is as large as its offset; it still swings by 4 % of it in the last second.
    printed = laws["as exercise 7.5 prints it"]["smooth"]["offset"]
    assert printed == pytest.approx(told["printed_law_offset_first_order"], rel=0.06)
    assert len(told["locus"]["real"]) == len(told["locus"]["bandwidth"])
    assert "<svg" in figure.read_text()
    assert "boundary layer" in run("flexible", "--seconds", "2")


def test_flexible_takes_a_robot_and_says_when_its_computer_is_too_slow():
    shown = run("flexible", "two_link", "--stiffness", "2e4,1e4", "--motor-inertia", "0.05", "--seconds", "2",
                "--rate", "300")  # fmt: skip
    assert "not stable: lower --bandwidth, raise --rate" in shown


def test_touch_finds_the_pushes_of_its_demonstration(contact):
    path, told = contact
    assert len(told["contacts"]) == 3  # the fourth, of 2 N, is across or along what two joints feel
    assert told["contacts"][0]["begin"] == pytest.approx(told["true_pushes"][0]["begin"], abs=0.05)
    assert told["contacts"][0]["force"][2] == pytest.approx(-10, abs=1.5)
    assert told["contacts"][0]["force_deviation"][1] is None  # a planar arm feels nothing across its plane
    assert told["smallest_force"]["median"] < 2
    again = as_json("touch", "two_link", str(path), "--free", "0:20", "--tool", "link2:0.4,0,0", "--held")
    assert [one["begin"] for one in again["contacts"]] == [one["begin"] for one in told["contacts"]]


def test_touch_takes_a_quiet_recording_a_result_and_prints_lines(contact, tmp_path):
    path, told = contact
    robot = sy.load_robot("two_link")
    recording = sy.load_recording(path, robot)
    quiet = tmp_path / "quiet.csv"
    sy.save_recording(recording.between(0, 20_000), quiet)
    sy.save_result(sy.identify(robot, recording.between(0, 20_000)), tmp_path / "arm.yaml")
    figure = tmp_path / "touch.svg"
    lines = run("touch", str(tmp_path / "arm.yaml"), str(path), "--quiet-recording", str(quiet), "--held", "--lines",
                "--figure", str(figure), "--tool", "link2:0.4,0,0")  # fmt: skip
    found = [json.loads(line) for line in lines.splitlines()]
    assert found[0]["begin"] == pytest.approx(told["true_pushes"][0]["begin"], abs=0.1)
    assert "<svg" in figure.read_text()
    assert "smallest steady force" in run("touch", "two_link", str(path), "--free", "0:20")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["adapt", "two_link", "--load", "-1"], "it must be above zero"),
        (["adapt", "two_link", "--load", "nan"], "it must be above zero"),
        (["adapt", "two_link", "--body", "hand"], "no identified body 'hand'"),
        (["adapt", "two_link", "--find", "everything"], "--find is 'everything'"),
        (["adapt", "two_link", "--motion", "dance"], "none of still, excite, and no file"),
        (["adapt", "two_link", "--seconds", "0.1"], "0.5 … 1200 s"),
        (["adapt", "two_link", "--noise", "-1"], "--noise is -1"),
        (["adapt", "two_link", "--rate", "0", "--motion", "still"], "rate is 0"),
        (["adapt", "two_link", "--figure", "x.png"], "ends in .svg"),
        (["adapt", "two_link", "--load", "500"], "error: "),
        (["adapt", "wheel_legged"], "error: "),
        (["flexible", "--stiffness", "-5"], "stiffness"),
        (["flexible", "--stiffness", "a"], "--stiffness takes a finite number"),
        (["flexible", "--stiffness", "1,2"], "one finite number, or 1"),
        (["flexible", "--gravity", "-1"], "gravity torque"),
        (["flexible", "--zeta", "-1"], "zeta is -1"),
        (["flexible", "--bandwidth", "inf"], "bandwidth is inf"),
        (["flexible", "--step", "0"], "the step is 0"),
        (["flexible", "--rate", "0"], "control_hz is 0"),
        (["flexible", "wheel_legged"], "ball or free joints"),
        (["touch", "wheel_legged", "--demo"], "ball or free joints"),
        (["flexible", "--lock", "joint1"], "--lock is for a robot"),
        (["touch", "two_link"], "give a recording, or --demo"),
        (["touch", "two_link", "none.npz", "--free", "0:5"], "none.npz"),
        (["touch", "two_link", "CONTACT"], "give one of --quiet-recording and --free"),
        (["touch", "two_link", "CONTACT", "--free", "5"], "--free takes FROM:TO"),
        (["touch", "two_link", "CONTACT", "--free", "500:600"], "outside the recording"),
        (["touch", "two_link", "CONTACT", "--free", "0:0.5"], "independent peaks"),
        (["touch", "two_link", "CONTACT", "--free", "0:5", "--tool", "hand"], "no moving body for --tool 'hand'"),
        (["touch", "two_link", "CONTACT", "--free", "0:5", "--per-hour", "0"], "false alarms an hour"),
        (["touch", "two_link", "CONTACT", "--free", "0:5", "--order", "9"], "order is 9"),
        (["touch", "two_link", "CONTACT", "--free", "0:5", "--output", "x.npz"], "--output writes the recording"),
        (["touch", "panda", "CONTACT", "--free", "0:5"], "error: "),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(arguments, said, contact, monkeypatch, capsys):
    words = [str(contact[0]) if word == "CONTACT" else word for word in arguments]
    monkeypatch.setattr(sys, "argv", ["steelyard", *words])
    with pytest.raises(SystemExit) as end:
        command_line.main()
    told = capsys.readouterr().err
    assert end.value.code == 2, told
    assert said in told
    assert "Traceback" not in told
