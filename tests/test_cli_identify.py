"""What can be asked of `steelyard identify` on the command line, and what it answers."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.identify_options import load_of
from steelyard.cli.main import app
from steelyard.errors import OptionError, SteelyardError
from test_nonlinear import loaded_pair, stribeck_recording

RUN = CliRunner()


def invoke(*arguments):
    return RUN.invoke(app, ["identify", *(str(x) for x in arguments)])


def asked(*arguments):
    """The JSON of a run that went well."""
    done = invoke(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("two_link", friction=("coulomb",))


@pytest.fixture(scope="module")
def file(robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "run.npz"
    return sy.save_recording(stribeck_recording(robot, np.random.default_rng(4), 0.05), path)


READY = ("--model", "two_link", "--preprocessing", "none", "--decimate", "none", "--delay", "0")


def test_stribecks_velocity_is_asked_for_by_name(file, tmp_path):
    result = tmp_path / "r.yaml"
    found = asked(file, *READY, "-a", "ML", "--nonlinear", "stribeck", "--friction", "coulomb", "-o", result)
    values = {one["name"]: one for one in found["nonlinear_parameters"]}
    for name, truth in (("joint1.stribeck_velocity", 0.2), ("joint2.stribeck_velocity", 0.1)):
        assert values[name]["value"] == pytest.approx(truth, abs=4 * values[name]["deviation"])
    assert found["validation"]["ML"]["relative"] < 0.02
    assert [s.name for s in sy.read_result(result).estimate.shapes] == list(values)
    shown = invoke(file, *READY, "-a", "ML", "--nonlinear", "stribeck", "--friction", "coulomb")
    assert "joint1.stribeck_velocity" in shown.stdout
    assert RUN.invoke(app, ["predict", str(result), str(file)]).exit_code == 0


def test_drive_gains_are_found_with_a_known_load_in_one_of_the_files(robot, tmp_path):
    bare, carrying = loaded_pair(sy.load_robot("two_link"), np.random.default_rng(5), np.array([12.0, 0.8]), 0.05)
    files = [sy.save_recording(x.recording, tmp_path / name) for x, name in ((bare, "a.npz"), (carrying, "b.npz"))]
    m, h, moments = 3.0, np.array([0.3, 0.0, 0.06]), np.array([0.01, 0.05, 0.05])
    c = h / m
    central = moments - m * (c @ c - c**2)
    load = f"b.npz={carrying.load.body}:{m},{c[0]},{c[1]},{c[2]},{','.join(map(str, central))},0,{m * c[0] * c[2]},0"
    found = asked(*files, *READY[:-2], "-a", "ML", "--nonlinear", "gains", "--load", load, "--friction", "none")
    values = [one["value"] for one in found["nonlinear_parameters"]]
    assert values == pytest.approx([12.0, 0.8], rel=0.03)
    assert "as good as the nominal model" in found["verdict"]  # which is the truth here, read through these gains


def test_a_known_load_is_the_mass_about_its_centre():
    load = load_of("hand:2,0,0,0.5,0.1,0.1,0.05")
    assert load.body == "hand"
    assert load.parameters == pytest.approx([2, 0, 0, 1, 0.6, 0, 0, 0.6, 0, 0.05])
    for wrong in ("hand", "hand:", "hand:1,2", "hand:x,0,0,0", "hand:-1"):
        with pytest.raises(OptionError, match="--load"):
            load_of(wrong)


def test_rounds_and_kinds_of_noise_are_asked_for(file):
    found = asked(file, *READY, "-a", "Rounds,WLS", "--noise", "coloured", "--friction", "coulomb")
    assert "torque left after each round" in found["methods"]["Rounds"]["message"]
    assert "whitened" in found["methods"]["WLS"]["message"]
    assert "covariance between joints" in asked(file, *READY, "--noise", "full")["methods"]["WLS"]["message"]


def test_a_physical_fit_obeys_what_the_command_line_says(file, tmp_path):
    model = tmp_path / "m.xml"
    found = asked(
        file, *READY, "--prior", "euclidean", "--prior-weight", "1", "--epsilon", "1e-4", "--total-mass", "3.0",
        "--bound", "link1.m=1.9:2.1", "--com", "link2=-0.05:0.3,-0.05:0.05,-0.1:0.1", "--symmetric", "link1:xz",
        "--export", model,
    )  # fmt: skip
    theta = found["parameters"]
    assert found["best"] == "Physical WLS"
    assert theta["link1.m"] + theta["link2.m"] == pytest.approx(3.0)
    assert 1.9 <= theta["link1.m"] <= 2.1
    assert -0.05 <= theta["link2.my"] / theta["link2.m"] <= 0.05
    assert [theta[f"link1.{part}"] for part in ("my", "Ixy", "Iyz")] == pytest.approx([0, 0, 0], abs=1e-9)
    assert sy.load_robot(model).parameters is not None
    within = asked(file, *READY, "--within", "com", "--symmetric", "link2:x")["parameters"]
    assert within["link2.Iyy"] == pytest.approx(within["link2.Izz"], rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--nonlinear", "stribeck"), "--algorithm ML"),
        (("-a", "ML", "--nonlinear", "strobeck"), "valid: stribeck"),
        (("-a", "ML", "--nonlinear", "gains"), "known load"),
        (("-a", "ML", "--nonlinear", "temperature"), "no temperature"),
        (("-a", "ML", "--nonlinear", "lugre", "--friction", "coulomb"), "--friction offset"),
        (("-a", "OLS", "--noise", "full"), "WLS"),
        (("--noise", "pink"), "joint, full, coloured"),
        (("--load", "other.csv=link2:1"), "not among"),
        (("--load", "link2:1"), "FILE=BODY"),
        (("--train", "3"), "FROM:TO"),
        (("--train", "5:3"), "FROM:TO"),
        (("--test", "0:3"), "give both"),
        (("--prior", "flat"), "entropic"),
        (("--prior-weight", "-1"), "greater than 0"),
        (("--com", "link2"), "BODY="),
        (("--com", "link2=1:2"), "BODY="),
        (("--com", "linkx=0:1,0:1,0:1"), "linkx"),
        (("--bound", "link2.m"), "NAME="),
        (("--bound", "nothing=0:1"), "nothing"),
        (("--symmetric", "link2"), "BODY:"),
        (("--symmetric", "link2:w"), "x, y or z"),
        (("--within", "sphere"), "ellipsoid"),
        (("--total-mass", "0"), "greater than 0"),
        (("--cutoff", "5", "--torque-cutoff", "5"), "choose one"),
    ],
)
def test_wrong_wishes_are_one_sentence(file, options, words):
    done = invoke(file, *READY, *options)
    assert done.exit_code != 0
    assert isinstance(done.exception, SteelyardError), done.output
    assert words in str(done.exception)


def test_all_compares_and_says_columns_and_condition(file):
    done = invoke(file, *READY, "-a", "OLS,WLS,IRLS,TLS")
    assert done.exit_code == 0, done.output
    for words in ("condition", "column of W", "held out", "link2.mx", "OLS", "TLS", "verdict"):
        assert words in done.stdout


def test_spans_choose_what_is_learnt_and_judged(file):
    found = asked(file, *READY, "--train", "0:8", "--test", "9:12", "--every-row")
    assert found["held_out"] == "9 to 12 s"
    assert found["validation"]["WLS"]["samples"] == pytest.approx(600, abs=3)
