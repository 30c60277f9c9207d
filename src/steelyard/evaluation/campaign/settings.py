"""`Study`: what a campaign varies and what it measures, from a YAML file or built in by name."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ...errors import OptionError, unknown_name
from ...identification.estimators import ESTIMATORS, Physical
from ...identification.fit import Estimator
from ...physics.friction import FRICTION_NAMES
from ...yamlfile import Fields, parse_fields, tuple_of_list
from .preparing import PREPARATIONS

MAX_CHARACTERS = 50_000
EXAMPLES = {  # the first stands for the file as a whole
    "robots": "robots: [{model: tx40}]",
    "friction": "friction: [coulomb-viscous]",
    "noise": "noise: {position_deg: [1.0e-3], torque: [0.05]}",
    "estimators": "estimators: [OLS, WLS, {IRLS: {loss: tukey}}]",
    "preprocessing": "preprocessing: [auto]",
    "guesses": "guesses: 25",
    "seeds": "seeds: 50",
    "trajectory": "trajectory: {period: 10, harmonics: 5}",
    "converged": "converged: {torque_error: 0.05}",
}

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Levels = Annotated[tuple[NotNegative, ...], BeforeValidator(tuple_of_list), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(tuple_of_list), Field(min_length=1)]

# Least squares and its kin: they solve the regression and do not simulate. Which of them come to the same answer from
# any initial guess, when the data show all base parameters, is a matter of their mathematics.
DIRECT = ("OLS", "WLS", "IRLS", "TLS", "ML", "MAP", "Ridge")
FROM_DATA_ALONE = ("OLS", "WLS", "IRLS", "TLS")
GROUPS = {
    "linear": ("OLS", "WLS", "IRLS", "TLS", "ML", "Physical WLS"),
    "all": (*ESTIMATORS, "Physical WLS"),
}


class RobotSettings(Fields):
    """A robot, and what its model file does not have."""

    model: str
    lock: Annotated[tuple[str, ...], BeforeValidator(tuple_of_list)] = ()
    armature: Annotated[tuple[NotNegative, ...], BeforeValidator(tuple_of_list)] | None = None  # kg·m², one a joint


class NoiseSettings(Fields):
    """Standard deviations; every pair of them is a level."""

    position_deg: Levels  # of joint positions, inside the control loop; of slides, as many rad in metres
    torque: Levels  # N·m or N


class TrajectorySettings(Fields):
    """Two excitations are designed, one to learn from and one to judge by."""

    period: Positive = 10.0
    harmonics: Count = 5
    starts: Count = 1
    rounds: Count = 4


class Criteria(Fields):
    """What converged means, beside the estimator's own word for it."""

    torque_error: Positive = 0.05  # relative, on the validation trajectory, and it must beat the initial guess


def pairs_of(value: Any) -> Any:
    """Names and single-item mappings {name: settings} as pairs."""
    if not isinstance(value, list | tuple):
        return value
    pairs = []
    for item in value:
        if isinstance(item, Mapping) and len(item) == 1:
            ((name, settings),) = item.items()
            pairs.append((str(name), dict(settings or {})))
        elif isinstance(item, str):
            pairs.append((item, {}))
        elif isinstance(item, tuple):
            pairs.append(item)
        else:
            raise ValueError(f"{item!r} is no estimator; write a name, or one with settings as IRLS: {{loss: tukey}}")
    return tuple(pairs)


def _robots(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    return tuple({"model": item} if isinstance(item, str) else item for item in value)


class Study(Fields):
    """Everything that a campaign does; a table follows from it alone."""

    name: str = "study"
    seed: Annotated[int, Field(ge=0)] = 1
    robots: Annotated[tuple[RobotSettings, ...], BeforeValidator(_robots), Field(min_length=1)]
    friction: Names = ("coulomb-viscous",)
    noise: NoiseSettings
    estimators: Annotated[tuple[tuple[str, dict[str, Any]], ...], BeforeValidator(pairs_of), Field(min_length=1)]
    preprocessing: Names = ("auto",)
    guesses: Count = 1
    guess_deviation: NotNegative = 0.15
    seeds: Count | None = None  # as many as base parameters
    trajectory: TrajectorySettings = TrajectorySettings()
    control_hz: Positive = 1000.0
    sample_hz: Positive = 1000.0
    converged: Criteria = Criteria()
    resimulate: bool = True
    resimulation_hz: Positive = 1000.0

    @property
    def digest(self) -> str:
        """A hash of what a single run depends on; how many there are, and of which estimators, is left out."""
        wide = {"name", "robots", "friction", "noise", "estimators", "preprocessing", "guesses", "seeds"}
        text = json.dumps(self.model_dump(mode="json", exclude=wide), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def label_of(name: str, settings: Mapping[str, Any]) -> str:
    """An estimator's name with what was set."""
    told = ", ".join(f"{key}={value}" for key, value in sorted(settings.items()))
    return f"{name}({told})" if told else name


def make_estimator(name: str, settings: Mapping[str, Any]) -> Estimator:
    """The estimator of a study, with settings of its own; `Physical X` is X with bodies that can exist."""
    inner = name.removeprefix("Physical ")
    if inner != name:
        made: Estimator = Physical(inner=make_estimator(inner, {}), **settings)
        return made
    if name not in ESTIMATORS:
        raise OptionError(unknown_name("estimator", name, [*ESTIMATORS, "Physical WLS", *GROUPS]))
    known = {field.name for field in fields(ESTIMATORS[name])}
    wrong = [key for key in settings if key not in known]
    if wrong:
        raise OptionError(unknown_name(f"setting of {name}", wrong[0], sorted(known)))
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    method: Estimator = ESTIMATORS[name](**given)
    return method


def methods_of(study: Study) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The estimators of a study, groups spelt out, each once."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, settings in study.estimators:
        for each in GROUPS.get(name, (name,)):
            make_estimator(each, settings if each == name else {})
            found.setdefault(label_of(each, settings), (each, settings))
    return tuple(found.values())


def study_names() -> tuple[str, ...]:
    """The studies that come with Steelyard."""
    folder = files(__package__) / "studies"
    return tuple(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml")))


def _check(study: Study, where: str) -> Study:
    for given, valid, what in (
        (study.friction, FRICTION_NAMES, "friction law"),
        (study.preprocessing, tuple(PREPARATIONS), "preprocessing"),
    ):
        for name in given:
            if name not in valid:
                raise OptionError(f"{where}: " + unknown_name(what, name, valid))
    methods_of(study)
    return study


def read_study(name: str | Path) -> Study:
    """A study from a YAML file, or one that comes with Steelyard by its name."""
    if str(name) in study_names():
        text, where = (files(__package__) / "studies" / f"{name}.yaml").read_text(encoding="utf-8"), str(name)
    else:
        path = Path(name)
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise OptionError(unknown_name("study", str(name), study_names()) + ", or a file that ends in .yaml")
        try:
            text, where = path.read_text(encoding="utf-8"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"{path} cannot be read: {error}") from None
    return _check(parse_fields(Study, text, where, OptionError, "a study", EXAMPLES, MAX_CHARACTERS), where)
