"""What README and docs promise: every command in them works, in order, and the pages build without a warning.

A block of commands is marked by what follows its language:

    ```sh                      run by this test, in a folder that a page has to itself
    ```sh needs: recordings    run where the published recordings are there (STEELYARD_DATA)
    ```sh no-run: REASON       not run: it needs hardware, changes the machine, or takes long
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.data.recording import Recording
from steelyard.identification.conclude import estimate
from steelyard.identification.identify import problem_of
from steelyard.robot.payload import with_payload
from steelyard.simulation.sensors import Sensors

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "README.zh.md", ROOT / "examples" / "README.md", *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECORDINGS = ("tx40", "panda-gaz2019", "rosbags/ur10_exciting_trajectory/ur10_exciting_trajectory.db3")


def blocks(page):
    """The blocks of commands on a page: what is said of them, and their lines without comments."""
    for language, told, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in ("sh", "bash", "console", "shell"):
            lines = [shlex.split(line, comments=True) for line in body.replace("\\\n", " ").splitlines()]
            yield language, told.strip(), [line for line in lines if line]


def run(words):
    """One command, in this process; `> file` takes what it prints."""
    target = None
    if ">" in words:
        words, target = words[: words.index(">")], words[words.index(">") + 1]
    assert words[0] == "steelyard", f"{words}: mark the block `no-run: REASON`, or call steelyard"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"steelyard {shlex.join(words[1:])}\n{result.output}\n{result.exception!r}"
    if target is not None:
        Path(target).write_text(result.stdout, encoding="utf-8")


@pytest.fixture(scope="session")
def things_at_hand(tmp_path_factory):
    """What a reader has: a model of an arm, and recordings of the Panda."""
    folder = tmp_path_factory.mktemp("reader")
    robot = sy.load_robot("panda")
    motions = [sy.design_excitation(robot, starts=1, rounds=2, seed=seed, margin=0.3) for seed in (0, 1)]
    sensors = Sensors(position_noise=1e-6, torque_noise=0.1)
    loaded = with_payload(robot, "hand", 1.0, (0.0, 0.0, 0.1))
    for name, who, motion, seed in (
        ("run", robot, 0, 0), ("other", robot, 1, 1), ("empty", robot, 0, 2), ("loaded", loaded, 1, 3),
    ):  # fmt: skip
        made = sy.simulate(who, motions[motion], nominal=robot, sensors=sensors, rng=np.random.default_rng(seed))
        for suffix in ("npz", "csv"):
            sy.save_recording(made, folder / f"{name}.{suffix}")
    sy.export_model(robot, folder / "my_arm.urdf")
    run_study = CliRunner().invoke(
        app, ["identify", str(folder / "run.npz"), "-m", "panda", "-o", str(folder / "result.yaml")]
    )
    assert run_study.exit_code == 0, run_study.output
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_works(page, things_at_hand, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEELYARD_QUIET", "0")  # restored, whatever a command sets
    for thing in things_at_hand.iterdir():
        shutil.copy(thing, tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "docs").mkdir()
    data = Path(os.environ.get("STEELYARD_DATA", ROOT.parent / "shared" / "data"))
    for name in RECORDINGS if data.is_dir() else ():
        (tmp_path / Path(name).name).symlink_to(data / name)
    for language, told, lines in blocks(page):
        assert language == "sh", f"{page.name}: write ```sh, not ```{language}"
        if told.startswith("no-run:"):
            assert len(told) > len("no-run: why"), f"{page.name}: say why a block is not run"
            continue
        assert told in ("", "needs: recordings"), f"{page.name}: what is '{told}' of a block?"
        if told and not data.is_dir():
            continue
        for words in lines:
            run(words)


def test_no_command_stands_outside_a_block_that_is_run():
    for page in PAGES:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        assert not re.search(r"^ {4,}steelyard ", text, re.MULTILINE), f"{page.name}: put commands into ```sh"


def test_python_of_the_quick_start_and_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        for language, _, body in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language == "python":
                exec(compile(body, str(page), "exec"), {})
    assert (tmp_path / "identified.xml").is_file()


def test_the_worked_example_of_an_estimator_passes_what_every_estimator_has_to(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "adding_an_estimator.md"
    (code,) = [body for language, _, body in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "python"]
    told = {"__name__": "example"}
    exec(compile(code, str(page), "exec"), told)
    Cauchy, robot, recording = told["Cauchy"], told["robot"], told["recording"]
    q, qd, qdd = (recording.more[name] for name in ("q_true", "qd_true", "qdd_true"))
    tau, rng = sy.inverse_dynamics(robot, q, qd, qdd), np.random.default_rng(0)
    exact = problem_of(robot, Recording(recording.t, q, tau, qd, qdd), preprocessing=None)
    truth = exact.model.base.reduce(robot.parameters)
    np.testing.assert_allclose(estimate(exact, Cauchy()).base_parameters, truth, atol=1e-7 * np.abs(truth).max())
    few = slice(None, None, 20)
    scores, far = [], []
    for _ in range(100):
        noisy = tau[few] + 0.05 * rng.normal(size=tau[few].shape)
        problem = problem_of(robot, Recording(recording.t[few], q[few], noisy, qd[few], qdd[few]), preprocessing=None)
        found = estimate(problem, Cauchy())
        scores.append((found.base_parameters - truth) / found.base_deviation)
        flat = estimate(problem, Cauchy(tuning=1e6)).base_parameters - estimate(problem, sy.WLS()).base_parameters
        far.append(np.abs(flat / found.base_deviation).max())
    # A root mean square of 100 draws of a dozen correlated parameters scatters by about 4 %.
    assert 0.88 < np.sqrt(np.mean(np.square(scores))) < 1.14
    # Its scales are medians, those of WLS are variances, which differ by a few per cent: so do the weights of joints.
    assert np.median(far) < 0.1


def test_chinese_pages_have_the_commands_of_the_english_ones():
    for english, chinese in (("README.md", "README.zh.md"), ("docs/quickstart.md", "docs/quickstart.zh.md")):
        assert [b[2] for b in blocks(ROOT / english) if "no-run" not in b[1]] == [
            b[2] for b in blocks(ROOT / chinese) if "no-run" not in b[1]
        ]


def test_the_documentation_builds_without_a_warning(tmp_path):
    pytest.importorskip("myst_parser", reason="pip install 'steelyard[docs]'")
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", BLOCK.sub("", page.read_text(encoding="utf-8"))):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
