"""`steelyard convert` writes what was read, says what was mended, and refuses in one sentence."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import main as command_line
from steelyard.cli.main import app

TEXT = "time,q0,q1,tau0,tau1\n0,1,2,3,4\n1,x,6,7,8\n2,1,2,3,4\n3,1,2,3,5\n"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_recording_is_converted_there_and_back(tmp_path, rng):
    q, tau = rng.standard_normal((2, 50, 2))
    first = sy.save_recording(sy.Recording(np.arange(50) * 0.01, q, tau), tmp_path / "a.npz")
    assert run("convert", first, tmp_path / "b.csv", "--model", "two_link").exit_code == 0
    done = run("convert", tmp_path / "b.csv", tmp_path / "c.npz", "--json")
    told = json.loads(done.output)
    assert told["samples"] == 50
    assert told["about"]["earlier"]["format"] == "npz"
    assert np.array_equal(sy.load_recording(tmp_path / "c.npz").tau, tau)


def test_repair_is_asked_for_and_said(tmp_path, monkeypatch, capsys):
    (tmp_path / "run.csv").write_text(TEXT)
    arguments = ["steelyard", "convert", str(tmp_path / "run.csv"), str(tmp_path / "run.npz")]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        command_line.main()
    assert stopped.value.code == 2
    assert "line 3, column 'q0': 'x' is not a finite number" in capsys.readouterr().err
    assert not (tmp_path / "run.npz").exists()
    done = run(*arguments[1:], "--repair")
    assert done.exit_code == 0
    assert "dropped rows with an entry that is no finite number" in done.output


def test_a_mapping_applies_to_a_folder(tmp_path):
    (tmp_path / "q.csv").write_text("90\n180\n")
    (tmp_path / "tau.csv").write_text("1\n2\n")
    (tmp_path / "map.yaml").write_text("rate_hz: 10\nq: {file: q.csv, unit: deg}\ntau: {file: tau.csv}\n")
    assert run("convert", tmp_path, tmp_path / "run.npz", "--mapping", tmp_path / "map.yaml").exit_code == 0
    assert np.allclose(sy.load_recording(tmp_path / "run.npz").q.ravel(), [np.pi / 2, np.pi])
