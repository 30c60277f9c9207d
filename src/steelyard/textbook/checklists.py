"""The chapter's checklists and pitfalls, each line with the command that answers it."""

from typing import NamedTuple


class Check(NamedTuple):
    """A line of a checklist: what the chapter asks for, what answers it, and how to see it."""

    asked: str
    answer: str
    command: str


CHECKLISTS: dict[str, tuple[Check, ...]] = {
    "Modelling": (
        Check("suitable coordinates and parameters", "ten a body about its frame, then joints; base parameters by "
              "structure", "steelyard info panda --base"),
        Check("the mass matrix is symmetric and positive definite", "at random states, against MuJoCo",
              "steelyard check panda"),
        Check("energy is kept without friction and control", "d(energy)/dt is the power of the torque",
              "steelyard check panda"),
        Check("joint limits and saturation", "limits of position, speed, acceleration and torque with room to spare",
              "steelyard excite panda --starts 1 --margin 0.2 --output traj.csv"),
    ),
    "Identification": (
        Check("excitation that covers the workspace", "Fourier series by a criterion of information",
              "steelyard excite panda --starts 1 --criterion logdet --output traj.csv"),
        Check("several runs averaged", "the period repeated; preprocessing averages it",
              "steelyard excite panda --starts 1 --periods 5 --output traj.csv"),
        Check("parameters physically consistent", "pseudo-inertias positive definite, by a semidefinite program",
              "steelyard identify run.npz --model panda --physical --output result.yaml"),
        Check("cross-validated", "judged on another recording",
              "steelyard identify run.npz --model panda --validate other.npz"),
    ),
    "Real time": (
        Check("sampling above ten times the bandwidth", "rate and gaps, how fast it moves, torque behind motion",
              "steelyard inspect run.npz --model panda"),
        Check("computation fast enough", "seconds of work for a recording followed online",
              "steelyard watch panda run.npz --events events.jsonl"),
        Check("faults detected, safe stop", "loads and friction that change are said as events, for the robot's own "
              "controller to stop", "steelyard watch panda run.npz --events events.jsonl"),
        Check("data kept for later", "joint states over DDS into a file",
              "steelyard record --model panda --seconds 30 --output run.npz"),
    ),
    "Performance": (
        Check("other loads", "what is carried, from a run with it and one without",
              "steelyard payload loaded.npz --unloaded empty.npz --model panda --body hand"),
        Check("other speeds: prediction", "torque of a motion that was not learnt from",
              "steelyard predict result.yaml other.npz"),
        Check("tracking and stability margins", "largest tracking error under delay, noise and a slow controller",
              "steelyard simulate panda --trajectory traj.csv --delay 2 --bandwidth 3"),
        Check("long runs", "friction that drifts with temperature",
              "steelyard watch panda run.npz --events events.jsonl"),
        Check("extremes", "a load, cold friction, poor sensors, in simulation",
              "steelyard simulate panda --trajectory traj.csv --payload hand=2 --torque-noise 0.5"),
    ),
    "Pitfalls": (
        Check("explicit Euler on stiff systems", "a step too long for the stiffest part is said, and one that fits",
              "steelyard simulate panda --trajectory traj.csv --stiffness 1e4 --step 0.0004"),
        Check("joints designed one by one", "one regression of all joints, with coupling",
              "steelyard identify run.npz --model panda"),
        Check("friction compensated away", "each way to compensate, and which joints oscillate when too much is taken",
              "steelyard compensate panda --gain 1.3"),
        Check("local optima", "convex programs where the problem allows, several starts where not",
              "steelyard excite panda --starts 3 --output traj.csv"),
        Check("the model taken for perfect", "intervals, residuals and what was not seen, in one report",
              "steelyard identify run.npz --model panda --report report.html"),
        Check("single-frequency excitation", "several harmonics; a blind direction is named",
              "steelyard excite panda --starts 1 --harmonics 5 --output traj.csv"),
    ),
}  # fmt: skip
