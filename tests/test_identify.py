"""From recordings to results: identify, validate, save, read back, predict."""

import dataclasses
import json

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.data.recording import Recording, save_recording
from steelyard.errors import DataError, SteelyardError
from steelyard.evaluation.study import Plan, cross_validate, faults_of, run_study, split_in_time
from steelyard.evaluation.truth import compare_with_truth
from steelyard.identification.alignment import find_delay
from steelyard.identification.identify import problem_of
from steelyard.identification.selection import essential_parameters, friction_worth_having
from steelyard.identification.terms import CouplingTerm, ViscousPowerTerm

RUN = CliRunner()


def moved(robot, rng, seconds=8.0, rate=250, noise=0.02, delay=0.0, wrong=None):
    """What a robot with its own friction would record, with position known and torque noisy."""
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = rng.uniform(0.8, 5.0, (robot.n, 5))
    a = rng.uniform(0.1, 0.4, (robot.n, 5))
    shift = rng.uniform(0.0, 6.0, (robot.n, 5))

    def states(at):
        phase = w * at[:, None, None] + shift
        return (a * np.sin(phase)).sum(-1), (a * w * np.cos(phase)).sum(-1), -(a * w**2 * np.sin(phase)).sum(-1)

    tau = sy.inverse_dynamics(robot, *states(t - delay))
    tau = tau + noise * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
    return Recording(t, states(t)[0], tau)


@pytest.fixture(scope="module")
def true():
    """A two-link arm whose true parameters are not those of its model file."""
    rng = np.random.default_rng(5)
    robot = sy.load_robot("two_link", friction=("coulomb", "offset"))
    theta = robot.parameters * (1 + 0.2 * rng.uniform(-1, 1, robot.layout.size))
    theta[robot.layout.block("coulomb")] = 0.6, 0.3
    return robot.with_parameters(theta)


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("two_link", friction=("coulomb", "offset"))


@pytest.fixture(scope="module")
def files(true, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    rng = np.random.default_rng(8)
    return tuple(save_recording(moved(true, rng), folder / name) for name in ("run.csv", "other.npz"))


def invoke(*arguments):
    return RUN.invoke(app, [str(x) for x in arguments])


def test_identify_finds_the_truth_from_positions_and_torques_alone(robot, true, rng):
    found = sy.identify(robot, moved(true, rng, noise=0.002), sy.WLS())
    truth = found.model.base.reduce(true.parameters)
    assert found.converged
    assert np.linalg.norm(found.base_parameters - truth) < 0.02 * np.linalg.norm(truth)
    z = (found.base_parameters - truth) / found.base_deviation
    assert np.abs(z).max() < 5.0


def test_methods_go_by_name_and_unknown_ones_are_told(robot, true, rng):
    recording = moved(true, rng)
    assert sy.identify(robot, recording, "irls").method == "IRLS"
    with pytest.raises(SteelyardError, match="OLS"):
        sy.identify(robot, recording, "LEAST")


def test_validation_says_better_and_not_better(robot, true, rng):
    learnt, unseen = moved(true, rng), moved(true, rng)
    found = sy.identify(robot, learnt)
    judged = sy.validate(robot, found, unseen)
    assert judged.better
    assert judged.relative < 0.04 < judged.nominal_relative
    assert "better than the nominal model" in judged.verdict
    again = sy.identify(true, learnt)
    same = sy.validate(true, again, unseen)
    assert not same.better
    assert "as good as the nominal model" in same.verdict


def test_a_split_is_in_time(true, rng):
    recording = moved(true, rng)
    first, rest = split_in_time(recording, 0.8)
    assert rest is not None
    assert first.t[-1] < rest.t[0]
    assert len(first) + len(rest) == len(recording)


def test_a_robot_that_ends_standing_still_is_judged_by_its_motion(true, rng):
    moving = sy.preprocess(moved(true, rng), robot=true)
    still = np.full((len(moving), moving.n), 0.0)
    t = np.arange(2 * len(moving)) * (moving.t[1] - moving.t[0])
    recording = sy.Recording(
        t,
        np.concatenate([moving.q, still + moving.q[-1]]),
        np.concatenate([moving.tau, still + moving.tau[-1]]),
        np.concatenate([moving.qd, still]),
        np.concatenate([moving.qdd, still]),
    )
    first, rest = split_in_time(recording, 0.8)
    assert rest is not None
    assert len(first) == pytest.approx(0.8 * len(moving), rel=0.02)


@pytest.mark.parametrize("delay", [0.004, -0.003])
def test_a_delay_between_torque_and_motion_is_found(robot, true, rng, delay):
    found = find_delay(problem_of(robot, moved(true, rng, delay=delay)))
    assert found.believed
    assert found.seconds == pytest.approx(delay, abs=4 * found.deviation + 1e-4)


def test_no_delay_is_found_where_there_is_none(robot, true, rng):
    assert not find_delay(problem_of(robot, moved(true, rng))).believed


def test_what_only_one_joint_shows_is_no_delay_of_the_torque(robot, true, rng):
    """A joint whose motor follows another law than the model's may look late by itself."""
    late, prompt = (moved(true, np.random.default_rng(3), delay=delay) for delay in (0.004, 0.0))
    tau = np.column_stack([late.tau[:, 0], prompt.tau[:, 1]])
    assert not find_delay(problem_of(robot, dataclasses.replace(prompt, tau=tau))).believed
    assert find_delay(problem_of(robot, late)).believed


def test_friction_columns_are_taken_only_where_the_data_call_for_them(rng):
    robot = sy.load_robot("two_link", friction=("coulomb", "offset"))
    bare = robot.parameters.copy()
    bare[robot.layout.block("coulomb")] = bare[robot.layout.block("offset")] = 0.0
    dry = bare.copy()
    dry[robot.layout.block("coulomb")] = 0.8
    for theta, expected in ((bare, ()), (dry, ("coulomb",))):
        problem = problem_of(robot, moved(robot.with_parameters(theta), rng))
        found = sy.identify(robot, moved(robot.with_parameters(theta), rng))
        assert friction_worth_having(problem, found, ("coulomb", "offset")) == expected


def test_essential_parameters_leave_out_what_is_zero(robot, true, rng):
    problem = problem_of(robot, moved(true, rng))
    found = sy.identify(robot, moved(true, rng))
    essential = essential_parameters(problem, found)
    assert 0 < len(essential.names) <= problem.rank
    assert essential.error_increase < 0.05
    assert not {f"{dof}.coulomb" for dof in robot.dof_names} & set(essential.dropped)


def test_terms_are_identified_beside_the_robot(robot, true, rng):
    recording = moved(true, rng, noise=0.0)
    ready = sy.preprocess(recording, None, robot)
    cubic = ViscousPowerTerm(3.0)
    tau = ready.tau + np.einsum("tnk,k->tn", cubic.columns(robot, ready), [0.02, 0.01])
    found = sy.identify(
        robot,
        Recording(ready.t, ready.q, tau, ready.qd, ready.qdd, ready.joints, ready.more),
        preprocessing=None,
        terms=(cubic,),
    )
    values = dict(zip(found.names, found.parameters, strict=True))
    assert values[f"{robot.dof_names[0]}.damping^3"] == pytest.approx(0.02, abs=2e-3)


def test_coupled_motors_put_friction_on_both_joints(robot):
    t = np.linspace(0, 1, 5)
    qd = np.column_stack([np.full(5, 2.0), np.full(5, -3.0)])
    first, second = robot.dof_names
    term = CouplingTerm(second, first, 0.5)
    columns = term.columns(robot, Recording(t, qd, qd, qd, np.zeros_like(qd)))
    # s = −3 + 0.5·2 = −2: the motor of joint 2 feels it whole, joint 1 by half.
    np.testing.assert_allclose(columns[0, 1], [0.0, -2.0, -1.0])
    np.testing.assert_allclose(columns[0, 0], [0.0, -1.0, -0.5])


def test_a_result_reads_back_as_it_was(robot, true, rng, tmp_path):
    found = sy.identify(robot, moved(true, rng), sy.Physical(inner=sy.WLS()))
    path = sy.save_result(found, tmp_path / "result.yaml")
    saved = sy.read_result(path)
    back = saved.estimate
    assert not saved.notes
    for name in ("parameters", "deviation", "base_parameters", "base_covariance", "blind"):
        np.testing.assert_array_equal(getattr(back, name), getattr(found, name))
    assert (back.names, back.converged, back.message) == (found.names, found.converged, found.message)
    recording = sy.preprocess(moved(true, rng), None, robot)
    np.testing.assert_array_equal(back.torque(recording), found.torque(recording))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("format:", "form:"),
        lambda text: text.replace("two_link", "no_such_robot"),
        lambda text: text.replace("name: link1.m,", "name: other.m,"),
        lambda text: "[1, 2, 3]",
        lambda text: "a: &a [*a, *a]\nb: !!python/object/apply:os.system ['true']",
        lambda text: text.replace("base_covariance", "elsewhere"),
    ],
)
def test_a_spoilt_result_is_told_in_one_sentence(robot, true, rng, tmp_path, spoil):
    path = sy.save_result(sy.identify(robot, moved(true, rng)), tmp_path / "result.yaml")
    path.write_text(spoil(path.read_text()))
    with pytest.raises(SteelyardError):
        sy.read_result(path)


def test_a_study_judges_every_method_and_takes_the_best(robot, true, rng):
    plan = Plan(methods=(sy.OLS(), sy.WLS(), sy.IRLS()))
    outcome = run_study(robot, [moved(true, rng)], plan, [moved(true, rng)])
    assert set(outcome.validations) == {"OLS", "WLS", "IRLS"}
    assert outcome.validation.relative == min(v.relative for v in outcome.validations.values())
    assert "better than the nominal model" in outcome.verdict


def test_the_truth_of_a_simulation_is_recognised(robot, true, rng):
    recording = moved(true, rng, noise=0.002)
    about = {"parameters": dict(zip(true.parameter_names, true.parameters.tolist(), strict=True))}
    known = Recording(recording.t, recording.q, recording.tau, about=about)
    truth = compare_with_truth(sy.identify(robot, known), known)
    assert truth is not None
    assert truth.inside >= 0.7 * truth.count
    assert truth.relative_error < 0.1 * truth.nominal_error
    assert compare_with_truth(sy.identify(robot, recording), recording) is None


def test_the_command_identifies_writes_and_predicts(files, tmp_path):
    run, other = files
    result, model = tmp_path / "result.yaml", tmp_path / "found.xml"
    done = invoke(
        "identify", run, "--model", "two_link", "--physical", "--validate", other, "--output", result, "--export", model
    )
    assert done.exit_code == 0, done.output
    assert "verdict" in done.output
    assert "better than the nominal model" in done.output
    content = yaml.safe_load(result.read_text())
    assert content["format"] == "steelyard result 1"
    assert content["physical"]["feasible"]
    assert sy.load_robot(model).n == 2
    predicted = tmp_path / "predicted.npz"
    done = invoke("predict", result, other, "--output", predicted, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["relative"] < 0.05
    assert sy.load_recording(predicted).more["tau_predicted"].shape[1] == 2


def test_all_compares_every_algorithm(files):
    done = invoke("identify", files[0], "-m", "two_link", "-a", "OLS,WLS,TLS,MAP", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert set(said["validation"]) == {"OLS", "WLS", "TLS", "MAP"}
    assert said["best"] in said["validation"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv", "-m", "two_link"), "no such file"),
        (("{run}", "-m", "panda"), "joints"),
        (("{run}", "-m", "two_link", "-a", "BEST"), "valid"),
        (("{run}", "-m", "two_link", "--fix", "link1.m"), "NAME=VALUE"),
        (("{run}", "-m", "two_link", "--fix", "link9.m=1"), "link9.m"),
        (("{run}", "-m", "two_link", "--terms", "magic"), "valid"),
        (("{run}", "-m", "two_link", "--train-share", "7"), "training share"),
        (("{run}", "-m", "two_link", "--output", "result.txt"), ".yaml"),
        (("{run}", "-m", "two_link", "--export", "arm.stl"), ".urdf"),
        (("{run}", "-m", "two_link", "--decimate", "x"), "--decimate"),
    ],
)
def test_what_a_user_gets_wrong_is_one_sentence(files, arguments, words):
    done = invoke("identify", *(str(a).format(run=files[0]) for a in arguments))
    assert done.exit_code != 0
    assert isinstance(done.exception, SteelyardError | SystemExit)
    assert words in (str(done.exception) + done.output)


def test_a_recording_that_stands_still_is_an_error_or_blind(robot):
    t = np.linspace(0, 1, 300)
    still = Recording(t, np.full((300, 2), 0.3), np.ones((300, 2)))
    try:
        found = sy.identify(robot, still)
    except DataError:
        return
    assert found.data_set.rank < found.data_set.base_rank
    assert "the data show" in found.message


def test_cross_validation_predicts_each_piece_from_the_others(robot, true, rng):
    folds = cross_validate(robot, [moved(true, rng)], sy.WLS(), 4)
    assert len(folds) == 4
    assert all(fold.relative < 0.05 < fold.nominal_relative for fold in folds)
    assert [fold.seconds[0] for fold in folds] == sorted(fold.seconds[0] for fold in folds)


def test_spans_say_what_to_learn_from_and_what_to_judge_on(robot, true, rng):
    recording = moved(true, rng)
    plan = Plan(methods=(sy.WLS(),), train_span=(1.0, 4.0), test_span=(5.0, 7.0))
    outcome = run_study(robot, [recording], plan)
    spans = [(e.recording.t[0], e.recording.t[-1]) for e in (outcome.training[0], outcome.testing[0])]
    assert np.allclose(spans, [(1.0, 4.0), (5.0, 7.0)], atol=0.01)
    assert outcome.held_out == "5 to 7 s"
    every = run_study(robot, [recording], dataclasses.replace(plan, every_row=True))
    assert "use" in outcome.testing[0].recording.more
    assert "use" not in every.testing[0].recording.more
    assert every.validation.relative != outcome.validation.relative
    with pytest.raises(SteelyardError, match="it lasts"):
        run_study(robot, [recording], Plan(methods=(sy.WLS(),), train_span=(0.0, 4.0), test_span=(50.0, 70.0)))
    with pytest.raises(SteelyardError, match="give both"):
        run_study(robot, [recording], Plan(methods=(sy.WLS(),), test_span=(5.0, 7.0)))


def test_a_torque_of_the_wrong_sign_is_said_before_anything_is_estimated(robot, true, rng):
    recording = moved(true, rng)
    turned = Recording(recording.t, recording.q, recording.tau * [1.0, -1.0])
    notes = run_study(robot, [turned], Plan(methods=(sy.WLS(),))).notes
    assert any("joint2 (-" in note and "sign" in note for note in notes)
    assert not any("sign of torque" in note for note in run_study(robot, [recording], Plan(methods=(sy.WLS(),))).notes)


def test_among_methods_that_predict_alike_the_one_whose_bodies_can_exist_is_taken(robot, true):
    recording = moved(true, np.random.default_rng(11), noise=0.05)
    outcome = run_study(robot, [recording], Plan(methods=(sy.OLS(), sy.WLS(), sy.Physical(inner=sy.WLS()))))
    found = outcome.estimates
    assert found["OLS"].invalid
    assert not found[outcome.best].invalid
    errors = {name: judged.relative for name, judged in outcome.validations.items()}
    assert errors[outcome.best] <= 1.01 * min(errors.values())


def test_a_robot_that_stands_still_tells_nothing_and_is_refused(robot, rng):
    still = Recording(np.arange(400) / 100.0, 1e-5 * rng.normal(size=(400, 2)), np.ones((400, 2)))
    with pytest.raises(DataError, match="no joint moves"):
        run_study(robot, [still], Plan(methods=(sy.OLS(),)))


def test_what_is_learnt_from_does_not_judge_and_what_inspection_finds_is_in_the_verdict(tmp_path, rng):
    robot = sy.load_robot("two_link")
    q, qd, qdd = (np.array(x) for x in _swinging(robot, 4.0))
    tau = sy.inverse_dynamics(robot, q, qd, qdd) + 0.01 * rng.normal(size=q.shape)
    tau[:, 1] *= -1.0
    sy.save_recording(sy.Recording(0.004 * np.arange(len(q)), q, tau), tmp_path / "run.csv")
    run = sy.load_recording(tmp_path / "run.csv", robot)
    plan = Plan(methods=(sy.WLS(),))
    with pytest.raises(sy.OptionError, match="cannot judge what it taught"):
        run_study(robot, [run], plan, [run])
    found = faults_of([run], robot)
    assert any("opposite sign" in text for text in found)
    outcome = dataclasses.replace(run_study(robot, [run], plan), faults=found)
    assert "BEFORE YOU USE IT" in outcome.verdict


def _swinging(robot, seconds):
    t = np.arange(0.0, seconds, 0.004)[:, None]
    w = 2 * np.pi * np.array([0.7, 1.1])
    return np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
