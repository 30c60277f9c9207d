"""The public names, in one place; `import steelyard` brings them in when the first one is asked for."""

from .data.load import load_recording, open_recording
from .data.preprocess import preprocess
from .data.quality import inspect_recording
from .data.recording import Recording, save_recording
from .dynamics import (
    base_parameters,
    coriolis_matrix,
    energy,
    forward_dynamics,
    gravity,
    inverse_dynamics,
    jacobian,
    jacobian_rate,
    known_torque,
    mass_matrix,
    pose,
    regressor,
    velocity,
)
from .errors import DataError, ModelError, OptionError, SteelyardError
from .evaluation.model_check import check_model
from .evaluation.model_compare import compare_models
from .evaluation.validation import validate
from .excitation.design import design_excitation
from .identification.estimate import Estimate
from .identification.estimators import IRLS, MAP, ML, OLS, TLS, WLS, Ridge
from .identification.estimators.physical import Physical
from .identification.identify import identify
from .identification.model import Experiment, Load
from .identification.payload import identify_payload
from .identification.result_file import read_result, save_result
from .robot.export import export_model
from .robot.library import library_names
from .robot.load import load_robot
from .robot.robot import Robot
from .simulation.closed_loop import simulate

__all__ = [
    "IRLS",
    "MAP",
    "ML",
    "OLS",
    "TLS",
    "WLS",
    "DataError",
    "Estimate",
    "Experiment",
    "Load",
    "ModelError",
    "OptionError",
    "Physical",
    "Recording",
    "Ridge",
    "Robot",
    "SteelyardError",
    "base_parameters",
    "check_model",
    "compare_models",
    "coriolis_matrix",
    "design_excitation",
    "energy",
    "export_model",
    "forward_dynamics",
    "gravity",
    "identify",
    "identify_payload",
    "inspect_recording",
    "inverse_dynamics",
    "jacobian",
    "jacobian_rate",
    "known_torque",
    "library_names",
    "load_recording",
    "load_robot",
    "mass_matrix",
    "open_recording",
    "pose",
    "preprocess",
    "read_result",
    "regressor",
    "save_recording",
    "save_result",
    "simulate",
    "validate",
    "velocity",
]
