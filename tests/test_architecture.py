"""What the layout of the code promises."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "steelyard"
ROOMS = (
    "robot",
    "dynamics",
    "physics",
    "excitation",
    "data",
    "simulation",
    "identification",
    "evaluation",
    "control",
    "balance",
    "textbook",
    "report",
    "cli",
)


def imported_rooms(path):
    """Rooms that a module imports from, whether relatively or by full name."""
    package = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            origin = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*origin, *(node.module.split(".") if node.module else ())))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "steelyard" and len(parts) > 1 and parts[1] in ROOMS:
                yield parts[1]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_rooms_above_it(room):
    assert (PACKAGE / room).is_dir()
    below = set(ROOMS[ROOMS.index(room) + 1 :])
    for path in (PACKAGE / room).rglob("*.py"):
        assert not below & set(imported_rooms(path)), path


def test_numba_is_known_in_one_place():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "compiled.py":
            assert "import numba" not in path.read_text(), path


def test_nothing_is_unpickled_and_yaml_is_loaded_safely():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        assert "pickle" not in text.replace("allow_pickle=False", ""), path
        assert "yaml.load(" not in text or "yaml.SafeLoader)" in text, path
        assert text.count("np.load(") <= text.count("allow_pickle=False"), path


def test_a_second_process_does_not_compile_again():
    """The first process may compile; the next ones say nothing."""
    code = (
        "import steelyard as sy, numpy as np; r = sy.load_robot('two_link'); "
        "sy.inverse_dynamics(r, np.zeros(2), np.zeros(2), np.zeros(2))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    second = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "compiling" not in second.stderr


def test_the_first_kernel_call_says_once_that_it_compiles(tmp_path):
    code = (
        "import steelyard as sy, numpy as np; r = sy.load_robot('two_link'); "
        "sy.pose(r, np.zeros(2)); sy.pose(r, np.zeros(2))"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "STEELYARD_QUIET": "0"}
    first = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    assert first.stderr.count("compiling") == 1
