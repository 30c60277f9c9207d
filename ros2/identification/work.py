"""What the identification node does, without ROS: a file of joint states in, an estimate and a summary out."""

from pathlib import Path
from typing import Any

import numpy as np

import steelyard as sy
from steelyard.data.preprocess import preprocess
from steelyard.identification.result_file import save_result

ALGORITHMS = ("OLS", "WLS", "IRLS", "TLS", "EKF", "ML", "CLOE")
TRAINING_SHARE = 0.8  # of the recording; the rest judges
_MODELS = (".xml", ".urdf")
_RESULTS = (".yaml", ".yml")


def checked(data_file: str, algorithm: str, output_file: str) -> None:
    """Refuse what cannot work before the work."""
    if not data_file:
        raise sy.OptionError("data_file is empty; give a recording, like data_file:=run.csv")
    if algorithm not in ALGORITHMS:
        raise sy.OptionError(f"no algorithm '{algorithm}'; valid: {', '.join(ALGORITHMS)}")
    if output_file and Path(output_file).suffix.lower() not in (*_MODELS, *_RESULTS):
        raise sy.OptionError(
            f"output_file is {output_file}; give {', '.join((*_RESULTS, *_MODELS))}, or leave it empty"
        )


def write(estimate: Any, output_file: str) -> None:
    """The estimate as YAML, or the robot's model with the identified parameters."""
    if Path(output_file).suffix.lower() in _MODELS:
        sy.export_model(estimate.robot, output_file)
    else:
        save_result(estimate, output_file)


def run(data_file: str, algorithm: str = "OLS", output_file: str = "", model: str = "panda", mapping: str = "") -> dict:
    """Identify from the first four fifths of a recording, and say how far the torque is off on the last fifth."""
    checked(data_file, algorithm, output_file)
    robot = sy.load_robot(model)
    recording = sy.load_recording(data_file, robot, mapping or None)
    cut = int(TRAINING_SHARE * len(recording))
    estimate = sy.identify(robot, recording.between(0, cut), algorithm)
    held_out = preprocess(recording.between(cut, len(recording)), None, robot)
    error = estimate.torque(held_out) - held_out.tau
    rmse = np.sqrt(np.mean(error**2, axis=0))
    if output_file:
        write(estimate, output_file)
    return {
        "robot": robot.name,
        "algorithm": algorithm,
        "converged": bool(estimate.converged),
        "message": estimate.message,
        "samples": len(recording),
        "parameters": dict(zip(estimate.names, map(float, estimate.parameters), strict=True)),
        "base_parameters": dict(zip(estimate.base_names, map(float, estimate.base_parameters), strict=True)),
        "torque_rmse_held_out": dict(zip(robot.dof_names, map(float, rmse), strict=True)),
        "written": output_file,
    }
