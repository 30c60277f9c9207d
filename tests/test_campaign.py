"""Campaigns: the same table whoever does the work, honest scores, studies that can be stopped."""

import json
import os
import re
import signal
import threading
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli.main import app
from steelyard.errors import OptionError
from steelyard.evaluation.campaign import cells, engine, runs
from steelyard.evaluation.campaign.cells import tasks_of
from steelyard.evaluation.campaign.engine import Crew, finished_rows, run_tasks
from steelyard.evaluation.campaign.guesses import initial_guess
from steelyard.evaluation.campaign.preparing import problems_of
from steelyard.evaluation.campaign.runs import run_task
from steelyard.evaluation.campaign.scene import Noise, Scene, load_settings, robot_with_friction, seeds_for
from steelyard.evaluation.campaign.settings import Study, prepared_methods, read_study, study_names
from steelyard.evaluation.campaign.summary import Score, references, summarise
from steelyard.evaluation.campaign.table import CLOCKS, VECTORS, read_table, table_name, table_of, write_table
from steelyard.excitation.trajectory import Fourier
from steelyard.identification.estimators import IRLS, WLS
from steelyard.identification.problem import build_problem
from steelyard.report.campaign_plots import Entry, maps
from steelyard.report.campaign_reading import reading
from steelyard.robot.feasibility import invalidities
from steelyard.robot.load import load_robot

STUDY = {
    "name": "small",
    "robots": ["two_link"],
    "noise": {"position_deg": [0.0, 1e-3], "torque": [0.05]},
    "estimators": ["OLS", "ML", "Physical WLS"],
    "guesses": 2,
    "seeds": 3,
}


def scene_of(**changes):
    """A robot on two motions that were made up, so that nothing has to be designed."""
    study = Study.model_validate({**STUDY, **changes})
    robot, law = robot_with_friction(study.robots[0], study.friction[0])
    rng = np.random.default_rng(5)
    motions = [Fourier.from_coefficients(4.0, np.c_[np.zeros(2), rng.uniform(-1, 1, (2, 8))]) for _ in range(2)]
    return Scene(study, "two_link", study.friction[0], robot, law, *motions)


def same(one, other):
    """Equal to the last bit in all that no clock says."""
    assert list(one) == list(other)
    for name in one:
        if name in VECTORS:
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one[name], other[name], strict=True))
        elif name not in CLOCKS:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    return True


@pytest.fixture(scope="module")
def tasks():
    return tasks_of([scene_of()])


@pytest.fixture(scope="module")
def alone(tasks, tmp_path_factory):
    """The table of one process."""
    return run_tasks(tasks, tmp_path_factory.mktemp("alone"), Crew(1)).table


def test_every_run_is_in_the_table_once(alone):
    keys = list(zip(*(alone[k].tolist() for k in ("position_noise", "estimator", "seed", "guess")), strict=True))
    assert len(keys) == len(set(keys)) == 2 * 3 * 3 * 2
    assert set(alone["status"]) == {"converged"}


def test_two_processes_of_which_all_are_killed_once_give_the_same_table(tasks, alone, tmp_path):
    killed = []

    def kill(done, total):
        if killed:
            return
        for pid in Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text().split():
            if "popen_loky_posix" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(int(pid), signal.SIGKILL)
                killed.append(pid)

    assert same(run_tasks(tasks, tmp_path, Crew(2), kill).table, alone)
    assert killed


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_table(tasks, alone, tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        killed = []

        def kill(done, total):
            if not killed:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        table = run_tasks(tasks, tmp_path, Crew(1, cluster.scheduler_address), kill).table
        client.wait_for_workers(2, timeout=30)
        assert pids[0] not in client.run(os.getpid).values()
    assert same(table, alone)
    assert len(list((tmp_path / "parts").iterdir())) == len(tasks)


def test_a_stopped_study_goes_on_where_it_was(tasks, alone, tmp_path, monkeypatch):
    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, tmp_path, Crew(1), stop)
    assert len(list((tmp_path / "parts").iterdir())) == 2
    again = []
    monkeypatch.setattr(engine, "run_task", lambda task: again.append(task.key) or run_task(task))
    assert same(run_tasks(tasks, tmp_path, Crew(1)).table, alone)
    assert len(again) == len(tasks) - 2
    assert same(run_tasks(tasks, tmp_path, Crew(1)).table, alone)  # nothing is left to do
    assert len(again) == len(tasks) - 2


def test_damaged_parts_are_done_again_and_said(tasks, alone, tmp_path):
    run_tasks(tasks, tmp_path, Crew(1))
    one, two, three = sorted((tmp_path / "parts").iterdir())[:3]
    one.write_bytes(one.read_bytes()[:300])
    two.write_text("rubbish")
    write_table({name: column[:1] for name, column in read_table(three).items()}, three)  # whole, but rows are missing
    (tmp_path / table_name()).write_bytes(b"")
    said = []
    work = run_tasks(tasks, tmp_path, Crew(1), say=said.append)
    assert same(work.table, alone)
    assert same(read_table(tmp_path / table_name()), alone)
    assert work.runs == sum(task.rows for task in tasks if any(task.key in str(path) for path in (one, two, three)))
    assert len(said) == 3
    assert all("damaged" in word for word in said)


def test_what_is_done_can_be_looked_at_before_the_rest_is(tasks, alone, tmp_path):
    assert finished_rows(tasks, tmp_path) is None
    said = []

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, tmp_path, Crew(1), stop, said.append)
    assert f"1 of {len(tasks)} tasks" in said[0]
    there = finished_rows(tasks, tmp_path)
    assert len(there["status"]) == tasks[0].rows
    assert same(there, {name: column[: tasks[0].rows] for name, column in alone.items()})


def test_a_folder_has_one_process_at_a_time(tasks, tmp_path):
    def another(done, total):
        with pytest.raises(OptionError, match="another process"):
            run_tasks(tasks, tmp_path, Crew(1))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, tmp_path, Crew(1), another)
    assert run_tasks(tasks, tmp_path, Crew(1)).runs == sum(task.rows for task in tasks[1:])  # it is free again


def test_a_scheduler_that_is_lost_is_one_sentence_and_the_study_goes_on(tasks, alone, tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": True, "dashboard_address": None}
    said = []
    with distributed.LocalCluster(**options) as cluster, pytest.raises(OptionError, match="was lost"):
        run_tasks(tasks, tmp_path, Crew(1, cluster.scheduler_address), lambda done, total: cluster.close(), said.append)
    assert "several threads" in said[0]
    assert same(run_tasks(tasks, tmp_path, Crew(1)).table, alone)


def test_rows_of_another_state_of_the_code_are_not_taken_for_this_one(monkeypatch):
    assert all((Path(cells.__file__).parents[2] / room).is_dir() for room in cells._ROOMS)
    (now, *_) = tasks_of([scene_of()])
    before = now.key
    monkeypatch.setattr(cells, "_code", lambda: "another")
    assert tasks_of([scene_of()])[0].key != before


def test_a_wider_study_keeps_what_was_done(tasks, alone, tmp_path, monkeypatch):
    run_tasks(tasks, tmp_path, Crew(1))
    again = []
    monkeypatch.setattr(engine, "run_task", lambda task: again.append(task) or run_task(task))
    wider = tasks_of([scene_of(noise={"position_deg": [0.0, 1e-3, 1e-2], "torque": [0.05]})])
    table = run_tasks(wider, tmp_path, Crew(1)).table
    assert {task.noise.position for task in again} == {np.radians(1e-2)}
    old = table["position_noise"] < np.radians(5e-3)
    assert same({k: v[np.argsort(~old, kind="stable")][: old.sum()] for k, v in table.items()}, alone)


def test_runs_that_share_a_factorisation_equal_runs_that_do_not():
    scene = scene_of(noise={"position_deg": [0.0], "torque": [0.05]})
    recordings = [scene.recording(Noise(0.0, 0.05), seed) for seed in range(3)]
    for how in ("exact", "auto, all rows", "auto"):
        shared = problems_of(scene.robot, recordings, how)
        assert shared[0].given is not None
        for problem in shared:
            (experiment,) = problem.experiments
            own = build_problem(
                scene.robot, experiment, decimation=problem.decimation, dead_zone=problem.model.dead_zone
            )
            for method in (WLS(), IRLS()):
                # Two orders of the same sums: rounding times the condition of W, about 1e-16 · 1e3.
                np.testing.assert_allclose(method.fit(problem).beta, method.fit(own).beta, rtol=1e-9, atol=1e-10)


def test_with_exact_motion_least_squares_reaches_the_bound_and_covers():
    scene = scene_of(
        noise={"position_deg": [0.0], "torque": [0.05]},
        estimators=["WLS", "ML"],
        preprocessing=["exact"],
        guesses=1,
        seeds=64,
        resimulate=False,
    )
    table = table_of([row for task in tasks_of([scene]) for row in run_task(task)])
    for score in summarise(table, references([scene])):
        # A mean square over 64 runs is known to sqrt(2/64) = 18 %; the median of eleven to less. Rows at standstill
        # are left out, which costs a little.
        assert 0.75 < score.efficiency < 1.15
        # 64 · 11 intervals; runs are independent, parameters of a run are not: three deviations of 64 · 3.
        assert 0.90 < score.coverage < 0.99
        assert score.bias < 0.35  # of 64 runs a mean is known to 1/8


def test_random_numbers_belong_to_their_key():
    words = seeds_for(1, "robot", 0.1, 3).generate_state(4)
    assert np.array_equal(words, seeds_for(1, "robot", 0.1, 3).generate_state(4))
    for other in (seeds_for(2, "robot", 0.1, 3), seeds_for(1, "robot", 0.1, 4), seeds_for(1, "robot", 0.2, 3)):
        assert not np.array_equal(words, other.generate_state(4))


@pytest.mark.parametrize("name", ["panda", "tx40", "two_link"])
def test_initial_guesses_are_bodies_that_can_exist(name):
    robot = load_robot(name)
    layout, rng = robot.layout, np.random.default_rng(0)
    masses = []
    for _ in range(200):
        guess = initial_guess(robot, 0.15, rng)
        rows = guess.parameters[layout.inertial].reshape(-1, 10)
        assert not invalidities(layout.bodies, rows, {})
        masses.append(rows[:, 0] / robot.parameters[layout.inertial].reshape(-1, 10)[:, 0])
    # 200 draws a body tell a deviation to 5 %.
    np.testing.assert_allclose(np.log(masses).std(axis=0), 0.15, rtol=0.2)


def test_an_estimator_that_breaks_is_counted_and_the_rest_goes_on(monkeypatch):
    scene = scene_of(estimators=["OLS", "ML"], guesses=2, seeds=1, noise={"position_deg": [1e-3], "torque": [0.05]})

    def solve(problem, estimator, before=()):
        if estimator.name == "ML":
            raise np.linalg.LinAlgError("SVD did not converge")
        return real(problem, estimator, before)

    real = runs._solve
    monkeypatch.setattr(runs, "_solve", solve)
    rows = [row for task in tasks_of([scene]) for row in run_task(task)]
    assert [row["status"] for row in rows] == ["converged", "converged", "failed", "failed"]
    assert rows[-1]["message"] == "LinAlgError: SVD did not converge"
    (ols, ml) = summarise(table_of(rows), references([scene]))
    assert (ols.failed, ml.failed, ml.converged) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_tables_come_back_as_they_were_written(alone, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    write_table(alone, tmp_path / f"table{suffix}")
    assert same(read_table(tmp_path / f"table{suffix}"), alone)


def test_studies_that_come_along_can_be_read():
    for name in study_names():
        study = read_study(name, load_settings)
        assert study.name == name
        assert all(methods for methods in prepared_methods(study).values())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("robots: [two_link]\nnoise: {position_deg: [0.0], torque: [0.1]}\nestimators: [OLZ]", "OLS"),
        ("robots: [two_link]\nnoise: {position_deg: [0.0], torque: [0.1]}\nestimators: [{IRLS: {los: x}}]", "loss"),
        ("robots: [two_link]\nnoise: {position_deg: [-1.0], torque: [0.1]}\nestimators: [OLS]", "below zero"),
        ("robots: [two_link]\nnoise: {torque: [0.1]}\nestimators: [OLS]", "missing"),
        (
            "robots: [two_link]\nfriction: [sand]\nnoise: {position_deg: [0.0], torque: [0.1]}\nestimators: [OLS]",
            "sand",
        ),
        (
            "robots: [two_link]\nfriction: [none, none]\nnoise: {position_deg: [0.0], torque: [1]}\nestimators: [OLS]",
            "line 2: friction: none stands here 2 times",
        ),
        ("robots: [two_link]\nnoise: {position_deg: [0.0], torque: [0.1, 0.1]}\nestimators: [OLS]", "0.1 stands here"),
        ("robots: [two_link]\nnoise: {torque: [1], position_deg: [0.0]}\nestimators: [OLS]\nguesses: 0", "0, below 1"),
        ("robots: []\nnoise: {position_deg: [0.0], torque: [0.1]}\nestimators: [OLS]", "robots"),
        ("[1, 2]", "list"),
        ("", "missing"),
    ],
)
def test_a_faulty_study_is_one_sentence(tmp_path, text, word):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(OptionError, match=word) as caught:
        read_study(path)
    assert "\n" not in str(caught.value)


def test_the_command_writes_table_and_report_and_estimates(tmp_path):
    study = {**STUDY, "seeds": 1, "guesses": 1, "trajectory": {"period": 3.0, "harmonics": 2, "rounds": 1}}
    (tmp_path / "small.yaml").write_text(json.dumps(study))
    folder = str(tmp_path / "out")
    run = CliRunner().invoke
    arguments = ["benchmark", str(tmp_path / "small.yaml"), "--output", folder, "--workers", "1", "--json"]
    answer = run(app, arguments, catch_exceptions=False)
    told = json.loads(answer.stdout)
    assert [score["estimator"] for score in told["scores"][:3]] == STUDY["estimators"]
    assert all(Path(path).stat().st_size > 0 for path in told["written"])
    assert "Benchmark small" in (tmp_path / "out" / "report.html").read_text()
    assert told["now"]["runs"] == told["runs"] == told["of"] == len(STUDY["estimators"]) * 2
    assert told["levels"][0]["unrest"] < told["levels"][1]["unrest"]  # noise of the encoders shakes the robot
    answer = run(app, [*arguments, "--estimate"], catch_exceptions=False)
    costs = json.loads(answer.stdout)
    assert costs["estimators"]["OLS"]["runs"] == costs["recordings"]["runs"] == 2
    answer = run(app, [*arguments, "--so-far"], catch_exceptions=False)
    assert json.loads(answer.stdout)["now"] is None
    assert (tmp_path / "out" / "so-far.html").is_file()
    answer = run(app, [*arguments[:3], str(tmp_path / "nowhere"), "--so-far"])
    assert "no runs" in str(answer.exception)
    answer = run(app, [*arguments, "--so-far", "--estimate"])
    assert isinstance(answer.exception, OptionError)


def entry(name, **figures):
    """An estimator whose score is made up."""
    usual = dict.fromkeys((field.name for field in fields(Score)), 0.0)
    good = {"converged": 1.0, "torque_error": 0.01, "coverage": 0.95, "efficiency": 0.5, "seconds": 1.0}
    return Entry(name, "σ", Score(**{**usual, **good, **figures}), {})


def test_the_reading_names_nobody_who_converges_seldom_and_is_not_blinded_by_a_hair(alone):
    told = reading(
        [
            entry("Seldom", converged=0.9, torque_error=0.001, feasible=1.0, seconds=1e-6),
            entry("Best", torque_error=0.0100, coverage=0.5),
            entry("Quick", torque_error=0.0105, seconds=0.1),
            entry("Quicker", torque_error=0.0150, seconds=0.01, feasible=1.0, efficiency=0.4),
        ],
        "",
    )
    cells = re.findall(r"<td[^>]*>(.*?)</td>", told)
    assert cells == [
        "σ", "Best: 1 %", "Quick: 100 ms (2 are as good)", "Quicker: 1.5 %", "Quick: 95 %", "Seldom (90 %)",
    ]  # fmt: skip


def test_a_map_has_guesses_from_the_best_to_the_worst_and_marks_what_did_not_converge():
    rows = {
        "seed": np.array([0, 0, 1, 1]),
        "guess": np.array([0, 1, 0, 1]),
        "guess_torque_error": np.array([0.3, 0.1, 0.3, 0.1]),
        "torque_error": np.array([0.1, 0.01, 0.001, np.nan]),
        "status": np.array(["wrong", "converged", "converged", "failed"]),
    }
    heat, wrong, failed = maps([replace(entry("X"), rows=rows)]).data
    np.testing.assert_allclose(heat.z, [[0.0, 1.0], [np.nan, -1.0]])  # log10 of per cent
    assert (wrong.name, list(wrong.x), list(wrong.y)) == ("wrong", [1], [0])
    assert (failed.name, list(failed.x), list(failed.y)) == ("failed", [0], [1])


def test_filters_that_simulate_from_sigma_points_do_not_say_that_they_evaluated_the_model_once():
    scene = scene_of(estimators=[{"EKF": {"on": "joint"}}, "EKF", "IV"], guesses=1, seeds=1, sample_hz=100.0)
    found = {row["estimator"]: row["evaluations"] for task in tasks_of([scene])[:3] for row in run_task(task)}
    assert np.isnan(found["EKF(on=joint)"])
    assert found["EKF"] == 1
    assert found["IV"] > 2
