"""Three real recordings against published figures: TX40 (FIGAROH), Panda (Gaz et al. 2019), UR10.

    python benchmarks/real.py [FOLDER OF RECORDINGS]

The folder (default: STEELYARD_DATA, else ../shared/data) is described in examples/README.md. Every sample of a test
span counts, standstill included; training leaves out rows near standstill. Nothing here is set for a robot: the same
steps, terms and estimator run on all three.
"""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import steelyard as sy
from steelyard.data.filters import Butterworth
from steelyard.data.gears import gear_of
from steelyard.data.preprocess import default_steps, preprocess
from steelyard.data.recording import Recording
from steelyard.data.rows import standstill_speeds
from steelyard.identification.alignment import aligned, find_delay, shifted
from steelyard.identification.estimate import Estimate
from steelyard.identification.identify import identify_problem
from steelyard.identification.problem import build_problem
from steelyard.identification.terms import couplings

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Case:
    """A recording, its mapping and its robot."""

    model: str
    path: str
    mapping: str


TX40 = Case("tx40", "tx40", "tx40.yaml")
PANDA = Case("panda", "panda-gaz2019", "panda_gaz2019.yaml")
UR10 = Case("ur10", "rosbags/ur10_exciting_trajectory/ur10_exciting_trajectory.db3", "ur10_bag.yaml")
# FIGAROH's comparison on the TX40: torque RMSE a joint on rows 29250:45000, its best physically feasible row a joint.
FIGAROH_BEST = (5.61, 7.42, 4.07, 1.72, 2.64, 1.72)


def prepared(folder: Path, case: Case, torque_cutoff_hz: float | None = None) -> tuple[sy.Robot, Recording]:
    robot = sy.load_robot(case.model, friction=("coulomb", "offset"))
    recording = sy.load_recording(folder / case.path, robot, EXAMPLES / case.mapping)
    steps = default_steps(recording, robot)
    if torque_cutoff_hz is not None:
        low_pass = Butterworth(cutoff_hz=torque_cutoff_hz, torque=True)
        steps = tuple(low_pass if isinstance(step, Butterworth) else step for step in steps)
    return robot, preprocess(recording, steps, robot)


def fitted(robot: sy.Robot, case: Case, training: Recording, method) -> tuple[Estimate, float]:
    terms = couplings(gear_of(robot, EXAMPLES / case.mapping))
    problem = build_problem(robot, training, terms=terms, dead_zone=standstill_speeds(training.qd))
    delay = find_delay(problem)
    seconds = delay.seconds if delay.believed else 0.0
    return identify_problem(aligned(problem, seconds), method), seconds


def errors(found: Estimate, recording: Recording, delay: float) -> tuple[np.ndarray, float]:
    """RMSE a joint and ‖e‖/‖tau‖, over every row whose torque was recorded."""
    moved = shifted(replace(recording, more={}), delay)
    rows = np.asarray(moved.more.get("use", np.ones(moved.tau.shape)))[:, 0] > 0.5
    e, tau = (moved.tau - found.torque(moved))[rows], moved.tau[rows]
    return np.sqrt(np.mean(e**2, axis=0)), float(np.linalg.norm(e) / np.linalg.norm(tau))


def row(name: str, rmse, relative: float | None, feasible: str = "") -> None:
    figures = " | ".join(x if isinstance(x, str) else f"{x:.3g}" for x in rmse)
    print(f"| {name} | {figures} | {'' if relative is None else f'{100 * relative:.2f} %'} | {feasible} |", flush=True)


def heading(title: str, n: int) -> None:
    print(f"\n{title}\n\n| method | {' | '.join(f'j{k + 1}' for k in range(n))} | relative | feasible links |")
    print("|---" * (n + 3) + "|")


def feasible_links(found: Estimate) -> str:
    bodies = found.model.robot.layout.bodies
    bad = {reason.subject for reason in found.invalid}
    return f"{sum(body not in bad for body in bodies)} of {len(bodies)}"


METHODS = {"OLS": sy.OLS(), "WLS": sy.WLS(), "IRLS": sy.IRLS(), "physical WLS": sy.Physical(inner=sy.WLS())}


def compare(title: str, robot, case, training: Recording, testing: Recording, published=()) -> None:
    heading(title, robot.n)
    for name, rmse, relative in published:
        row(name, rmse, relative)
    for name, method in METHODS.items():
        found, delay = fitted(robot, case, training, method)
        rmse, relative = errors(found, testing, delay)
        row(name, rmse, relative, feasible_links(found))


def tx40(folder: Path) -> None:
    robot, whole = prepared(folder, TX40, torque_cutoff_hz=100.0)
    compare(
        "TX40, FIGAROH's split: trained on rows 0:24750, torque RMSE (N·m) on rows 29250:45000, torque below 100 Hz",
        robot, TX40, whole.between(0, 24750), whole.between(29250, 45000),
        [("FIGAROH, the best of its methods a joint", FIGAROH_BEST, None)],
    )  # fmt: skip
    compare(
        "TX40, motion only: trained on 0.1 to 4.95 s, tested on 4.95 to 7.5 s, torque below 100 Hz",
        robot, TX40, whole.between(500, 24750), whole.between(24750, 37500),
    )  # fmt: skip


def panda(folder: Path) -> None:
    published = [("Gaz et al. 2019, least squares, in sample", ("",) * 7, 0.0141)]
    for cutoff, words in ((5.0, "torque below 5 Hz"), (None, "torque as measured")):
        robot, whole = prepared(folder, PANDA, cutoff)
        cut = round(0.8 * len(whole))
        compare(f"Panda, in sample, {words}", robot, PANDA, whole, whole, published)
        compare(
            f"Panda, trained on the first 80 %, tested on the rest, {words}",
            robot, PANDA, whole.between(0, cut), whole.between(cut, len(whole)),
        )  # fmt: skip


def ur10(folder: Path) -> None:
    robot, whole = prepared(folder, UR10)
    half = len(whole) // 2
    compare(
        "UR10, trained on the first half, tested on the second",
        robot, UR10, whole.between(0, half), whole.between(half, len(whole)),
        [("plain least squares", ("",) * 6, 0.0786), ("its authors' model with sigmoid friction", ("",) * 6, 0.0853)],
    )  # fmt: skip


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STEELYARD_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise SystemExit(f"no recordings at {folder}; give their folder, or set STEELYARD_DATA")
    tx40(folder)
    panda(folder)
    ur10(folder)


if __name__ == "__main__":
    main()
