"""A whole study from one YAML file: what it finds, what it does not do twice, and how it tells mistakes."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.errors import DataError, OptionError
from steelyard.evaluation.job.settings import built_in, parse_job
from steelyard.evaluation.truth import Truth

STUDY = """\
robot: {model: two_link}
excitation: {period: 5, harmonics: 3, starts: 1, rounds: 2}
simulation: {model_error: 0.15, torque_noise: 0.05}
estimators: [WLS]
report: {page: false}
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == code, (result.output, result.exception)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(STUDY)
    return folder, run("run", folder / "study.yaml")


@pytest.fixture
def study(finished, tmp_path):
    """A finished study of one's own."""
    folder = tmp_path / "own"
    shutil.copytree(finished[0], folder)
    return folder


def test_a_study_writes_what_it_says_and_finds_the_truth(finished):
    folder, told = finished
    assert told["as_before"] == []
    truth = told["truths"]["WLS"]
    assert truth["honest"]
    assert truth["relative_error"] < 0.1 * truth["nominal_error"]
    for name in ("trajectory.csv", "recording.npz", "validation.npz", "estimates/WLS.yaml", "result.yaml"):
        assert (folder / "study" / name).is_file(), name
    assert sy.read_result(folder / "study" / "result.yaml").estimate.method == "WLS"


def test_a_finished_study_is_not_done_again(study):
    before = {path: path.stat().st_mtime_ns for path in (study / "study").rglob("*") if path.is_file()}
    told = run("run", study / "study.yaml")
    stages = {"trajectory", "validation_trajectory", "recording", "validation", "WLS", "results"}
    assert set(told["as_before"]) == stages
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_one_more_estimator_leaves_the_other_stages_as_they_are(study):
    path = study / "study.yaml"
    path.write_text(STUDY.replace("[WLS]", "[WLS, OLS]"))
    told = run("run", path)
    assert set(told["as_before"]) == {"trajectory", "validation_trajectory", "recording", "validation", "WLS"}
    assert set(told["methods"]) == {"WLS", "OLS"}


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (("torque_noise: 0.05", "torque_noise: 0.06"), {"trajectory", "validation_trajectory"}),
        (("period: 5", "period: 5.5"), set()),
    ],
)
def test_a_change_does_again_what_depends_on_it(study, change, again):
    path = study / "study.yaml"
    path.write_text(STUDY.replace(*change))
    assert set(run("run", path)["as_before"]) == again


def test_a_file_that_was_tampered_with_is_made_anew(study):
    (study / "study" / "estimates" / "WLS.yaml").write_text("not what it was")
    assert "WLS" not in run("run", study / "study.yaml")["as_before"]
    assert sy.read_result(study / "study" / "estimates" / "WLS.yaml").estimate.converged


def test_an_estimate_read_again_gives_the_very_same_result(finished, study):
    (study / "study" / "result.yaml").unlink()
    told = run("run", study / "study.yaml")
    assert "WLS" in told["as_before"]
    assert "results" not in told["as_before"]
    assert told["validation"] == finished[1]["validation"]
    assert told["truths"] == finished[1]["truths"]


def test_again_does_everything(study):
    assert run("run", study / "study.yaml", "--again")["as_before"] == []


def test_without_data_a_study_ends_with_the_motions_and_goes_on_with_recordings(study):
    path = study / "study.yaml"
    path.write_text("robot: {model: two_link}\nexcitation: {period: 5, harmonics: 3, starts: 1, rounds: 2}\n")
    told = run("run", path)
    assert told["as_before"] == ["trajectory", "validation_trajectory"]
    assert "verdict" not in told
    path.write_text(
        "robot: {model: two_link}\ndata: {recordings: [study/recording.npz], validation: [study/validation.npz]}\n"
        "estimators: [WLS, Physical WLS]\nreport: {page: false, model: found.urdf}\n"
    )
    told = run("run", path, "--output", study / "real")
    assert set(told["methods"]) == {"WLS", "Physical WLS"}
    assert sy.load_robot(study / "real" / "found.urdf").n == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("robot: {model: panda}\n", "nothing to do"),
        (STUDY + "data: {recordings: [run.csv]}\n", "simulation and data are both given"),
        (STUDY.replace("harmonics", "harmonic"), "line 2: no field 'harmonic'; did you mean 'harmonics'"),
        (STUDY.replace("period: 5", "period: '5'"), "line 2: excitation.period is '5', not a number"),
        (STUDY.replace("[WLS]", "[WSL]"), "line 4: no estimator 'WSL'; did you mean 'WLS'"),
        (STUDY.replace("[WLS]", "[WLS, WLS]"), "WLS is asked for twice"),
        (STUDY.replace("[WLS]", "[{IRLS: {los: tukey}}]"), "line 4: no setting of IRLS 'los'; did you mean 'loss'"),
        (STUDY + "terms: [cubik]\n", "line 6: no term 'cubik'; did you mean 'cubic'"),
        (STUDY.replace("two_link}", "two_link, friction: [sticky]}"), "no friction column 'sticky'"),
        (STUDY.replace("torque_noise: 0.05", "friction: rusty"), "line 3"),
        (STUDY.replace("model_error: 0.15", "model_error: .nan"), "line 3"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_remedy(text, said):
    with pytest.raises(OptionError) as told:
        parse_job(text, "study.yaml")
    assert said in str(told.value)
    assert "study.yaml" in str(told.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (STUDY.replace("two_link", "no_such"), sy.ModelError),
        (STUDY.replace("torque_noise: 0.05", "torque_noise: [0.1, 0.1, 0.1]"), OptionError),
        (STUDY.replace("page: false", "model: found.stl"), OptionError),
        ("robot: {model: two_link}\ndata: {recordings: [gone.csv]}\n", DataError),
    ],
)
def test_what_cannot_be_done_is_an_error_of_the_user(tmp_path, text, error):
    (tmp_path / "study.yaml").write_text(text)
    result = CliRunner().invoke(app, ["run", str(tmp_path / "study.yaml")])
    assert isinstance(result.exception, error), result.exception


def test_the_example_is_a_study():
    shown = CliRunner().invoke(app, ["run", "--example"]).stdout
    job = parse_job(shown, "example")
    assert job.simulation is not None
    # The other way, data instead of a simulation, with its comment marks taken off.
    lines = shown.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("# data:")))
    data = "\n".join(line.removeprefix("# ") for line in lines[first : first + 5])
    assert parse_job(f"robot: {{model: panda}}\n{data}\n", "example").data.validation == ("other.csv",)


def test_the_demonstration_finds_the_truth_and_says_so(tmp_path):
    folder, picture = tmp_path / "demo", tmp_path / "torque.svg"
    result = CliRunner().invoke(app, ["demo", "two_link", "--output", str(folder), "--figure", str(picture)])
    assert result.exit_code == 0, (result.output, result.exception)
    said = result.stdout
    for method in ("OLS", "WLS", "IRLS", "TLS", "ML", "MAP", "Ridge", "Physical WLS"):
        assert method in said
    assert "of the truth: the intervals hold what they promise" in said
    assert "better than the nominal model on held-out data" in said
    assert "report.html" in said
    for name in ("study.yaml", "recording.npz", "validation.npz", "result.yaml", "identified.xml", "report.html"):
        assert (folder / name).stat().st_size > 0, name
    assert picture.read_text().startswith("<svg")
    again = run("run", folder / "study.yaml", "--output", folder)
    assert "Physical WLS" in again["as_before"]
    assert sy.load_robot(folder / "identified.xml").n == 2


def test_the_model_of_a_demonstration_is_a_wrong_one_and_the_truth_could_exist():
    from pathlib import Path

    from steelyard.evaluation.job.work import robot_of, true_robot
    from steelyard.robot.feasibility import invalidities

    job = parse_job(built_in("demo").replace("{model}", "panda").replace("{seed}", "3"), "demo")
    robot = robot_of(job, Path())
    truth = true_robot(robot, job.simulation)
    base = sy.base_parameters(robot)
    wrong = base.reduce(truth.parameters) - base.reduce(robot.parameters)
    assert abs(wrong).max() > 0.1
    rows = truth.parameters[truth.layout.inertial].reshape(-1, 10)
    assert not invalidities(truth.layout.bodies, rows)


@pytest.mark.parametrize(("inside", "honest"), [(62, True), (54, True), (53, False), (30, False)])
def test_too_few_parameters_within_their_intervals_are_called_too_few(inside, honest):
    """Of 62 at 95 %, 54 or more are inside in 99 of 100 cases (the binomial distribution's table)."""
    truth = Truth(62, inside, 0.001, 0.5, 2.0, ())
    assert truth.least_expected == 54
    assert truth.honest is honest
    assert ("TOO NARROW" in truth.verdict) is not honest
