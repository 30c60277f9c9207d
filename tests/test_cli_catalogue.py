"""What all commands have in common."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from steelyard.cli import main as command_line
from steelyard.cli.catalogue import ENTRIES, STAGES, load
from steelyard.cli.main import app
from steelyard.errors import OptionError

# A name means the same thing wherever it stands; these have the same short form, too.
SHORT = {
    "--output": "-o",
    "--model": "-m",
    "--algorithm": "-a",
    "--trajectory": "-t",
    "--quiet": "-q",
    "--verbose": "-v",
}


def options_of(command):
    return {name: param.opts for param in command.params if param.param_type_name == "option" for name in param.opts}


def test_help_imports_neither_mujoco_nor_numba():
    """They take seconds, and nobody who asks what commands there are should wait for them."""
    code = (
        "import sys; from typer.testing import CliRunner; from steelyard.cli.main import app; "
        "result = CliRunner().invoke(app, ['--help']); assert result.exit_code == 0, result.output; "
        "print(sorted({'mujoco', 'numba', 'scipy', 'pandas', 'plotly', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_help_lists_every_command_under_its_stage():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    for stage, entries in STAGES.items():
        assert stage in shown
        for entry in entries:
            assert entry.summary in shown


@pytest.mark.parametrize("name", ENTRIES)
def test_a_command_has_json_an_example_and_the_common_vocabulary(name):
    command = load(name)
    options = options_of(command)
    assert "--json" in options
    assert re.search(rf"Examples?: +`steelyard {name}\b", command.help), "the help has no example of itself"
    assert {"--quiet", "--verbose"} <= set(options)
    for long, short in SHORT.items():
        if long in options:
            assert short in options[long], f"{name} {long} has no {short}"
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
    undocumented = [param.name for param in command.params if not getattr(param, "help", None)]
    assert not undocumented, f"options of {name} without help: {undocumented}"


def test_completion_offers_commands_and_their_options():
    def completed(words, count):
        env = {"_STEELYARD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        return CliRunner().invoke(app, [], prog_name="steelyard", env=env).output.split()

    assert {"identify", "info", "inspect"} <= set(completed("steelyard i", 1))
    assert "--algorithm" in completed("steelyard identify --alg", 2)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["robots"], 0, ""),
        (["info", "no_such_robot"], 2, "no_such_robot"),
        (["identfy"], 2, "Did you mean 'identify'"),
        (["info"], 2, "Missing argument"),
        (["info", "panda", "--no-such-option"], 2, "--no-such-option"),
    ],
)
def test_exit_codes_tell_whose_fault_it_was(arguments, code, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["steelyard", *arguments])
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert (end.value.code or 0) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("fault", "code"), [(OptionError("mend it"), 2), (ZeroDivisionError("ours"), 1)])
def test_a_fault_of_ours_is_exit_code_1_and_no_traceback(fault, code, monkeypatch, capsys):
    def broken():
        raise fault

    monkeypatch.setattr(command_line, "app", broken)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == code
    told = capsys.readouterr().err
    assert str(fault) in told
    assert "Traceback" not in told


def test_verbose_says_every_step_on_standard_error_and_quiet_none(monkeypatch, capsys):
    from steelyard.cli.progress import reporting

    monkeypatch.setenv("STEELYARD_VERBOSE", "1")
    with reporting() as report:
        report("weighing", 0.1)
        report("weighing", 0.2)
        report("reading the scale", 0.3)
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.split("s  ")[1] for line in told.err.splitlines()] == ["weighing", "reading the scale"]
    monkeypatch.setenv("STEELYARD_QUIET", "1")
    with reporting() as report:
        report("weighing", 0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line",
    [
        "gear --load 1 --motor 1e-4 --ratio 1e160",
        "flexible --stiffness 1e300",
        "flexible --motor-inertia 1e-300",
        "flexible --bandwidth 1e300",
        "adapt two_link --bandwidth 1e300",
        "simulate two_link --trajectory nowhere.csv --bandwidth 1e300",
        "watch two_link nowhere.csv --cutoff 1e300",
    ],
)
def test_numbers_of_no_robot_are_refused_with_their_option(line, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["steelyard", *line.split()])
    with pytest.raises(SystemExit) as stopped:
        command_line.main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert line.split()[-2] in said
