"""`Study`: what a campaign varies and what it measures, from a YAML file or built in by name."""

import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator

from ...errors import OptionError, SteelyardError, unknown_name
from ...physics.friction import FRICTION_NAMES
from ...yamlfile import Fields, line_of, parse_fields, tuple_of_list
from .methods import GROUPS, Method, label_of, make_estimator, spelt_out
from .preparing import preparation

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


def _said(check: Callable[[Any], Any]) -> BeforeValidator:
    """A check whose sentence comes with the line of the item."""

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except OptionError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(checked)


def _friction(name: Any) -> Any:
    if isinstance(name, str) and name not in FRICTION_NAMES:
        raise OptionError(unknown_name("friction law", name, FRICTION_NAMES))
    return name


def _preprocessing(name: Any) -> Any:
    if isinstance(name, str):
        preparation(name)
    return name


def _method(item: Any) -> Any:
    """A name, or a single-item mapping {name: settings}, as a pair; what the estimator refuses is said here."""
    if isinstance(item, Mapping) and len(item) == 1:
        ((name, settings),) = item.items()
    elif isinstance(item, tuple | list) and len(item) == 2:
        name, settings = item
    else:
        name, settings = item, {}
    settings = {} if settings is None else settings
    if not isinstance(name, str) or not isinstance(settings, Mapping):
        raise OptionError(f"{item!r} is no estimator; write a name, or one with settings as IRLS: {{loss: tukey}}")
    settings = {str(key): value for key, value in settings.items()}
    hows = settings.get("preprocessing", ())
    if isinstance(hows, str):
        settings["preprocessing"] = hows = [hows]
    if not (isinstance(hows, list | tuple) and all(isinstance(how, str) for how in hows)):
        raise OptionError(f"preprocessing of {name} is {hows!r}; give a name or a list of names")
    for how in hows:
        preparation(how)
    others = {key: value for key, value in settings.items() if key != "preprocessing"}
    if name in GROUPS and others:
        raise OptionError(f"{name} is a group of estimators and takes no settings but preprocessing")
    for one, preset in spelt_out(name, {}):
        make_estimator(one, {**{k: v for k, v in preset.items() if k != "preprocessing"}, **others})
    return name, settings


def _robot(item: Any) -> Any:
    return {"model": item} if isinstance(item, str) else item


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]
List = BeforeValidator(tuple_of_list)


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} stands here {values.count(value)} times; once is enough")
    return values


Once = AfterValidator(_once)  # what stands twice would be counted twice
Levels = Annotated[tuple[NotNegative, ...], List, Field(min_length=1), Once]


class RobotSettings(Fields):
    """A robot, and what its model file does not have."""

    model: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)] | None = None  # in the table; that of the model's file
    lock: Annotated[tuple[str, ...], List] = ()
    bodies: Annotated[tuple[str, ...], List] = ()  # those to identify; all
    armature: Annotated[tuple[NotNegative, ...], List] | None = None  # kg·m², one a joint

    @property
    def label(self) -> str:
        return self.name or Path(self.model).stem


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


class Study(Fields):
    """Everything that a campaign does; a table follows from it alone."""

    name: str = "study"
    seed: Annotated[int, Field(ge=0)] = 1
    robots: Annotated[tuple[Annotated[RobotSettings, BeforeValidator(_robot)], ...], List, Field(min_length=1)]
    friction: Annotated[tuple[Annotated[str, _said(_friction)], ...], List, Field(min_length=1), Once] = (
        "coulomb-viscous",
    )
    noise: NoiseSettings
    estimators: Annotated[tuple[Annotated[tuple[str, dict[str, Any]], _said(_method)], ...], List, Field(min_length=1)]
    preprocessing: Annotated[tuple[Annotated[str, _said(_preprocessing)], ...], List, Field(min_length=1), Once] = (
        "auto",
    )
    guesses: Count = 1
    guess_deviation: NotNegative = 0.15
    seeds: Count | None = None  # as many as base parameters
    trajectory: TrajectorySettings = TrajectorySettings()
    control_hz: Positive = 1000.0
    sample_hz: Positive = 1000.0
    converged: Criteria = Criteria()
    resimulate: bool = True
    resimulation_hz: Positive = 1000.0

    @field_validator("robots")
    @classmethod
    def _told_apart(cls, robots: tuple[RobotSettings, ...]) -> tuple[RobotSettings, ...]:
        labels = [robot.label for robot in robots]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two robots are called {label}; give one of them a name: of its own")
        return robots

    @property
    def digest(self) -> str:
        """A hash of what a single run depends on; how many there are, and of which estimators, is left out."""
        wide = {"name", "robots", "friction", "noise", "estimators", "preprocessing", "guesses", "seeds"}
        text = json.dumps(self.model_dump(mode="json", exclude=wide), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def prepared_methods(study: Study) -> dict[str, tuple[Method, ...]]:
    """The estimators behind each way of preprocessing, groups spelt out, each once."""
    found: dict[str, dict[str, Method]] = {how: {} for how in study.preprocessing}
    for name, settings in study.estimators:
        for one, preset in spelt_out(name, settings):
            told = {key: value for key, value in {**preset, **settings}.items() if key != "preprocessing"}
            for how in settings.get("preprocessing") or preset.get("preprocessing") or study.preprocessing:
                found.setdefault(how, {}).setdefault(label_of(one, told), (one, told))
    return {how: tuple(methods.values()) for how, methods in found.items() if methods}


def study_names() -> tuple[str, ...]:
    """The studies that come with Steelyard."""
    folder = files(__package__) / "studies"
    return tuple(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml")))


def narrowed(study: Study, changes: Mapping[str, Any]) -> Study:
    """A study with other fields, checked like one from a file."""
    try:
        return Study.model_validate({**study.model_dump(), **changes})
    except ValidationError as invalid:
        fault = invalid.errors(include_url=False)[0]
        told = fault.get("ctx", {}).get("error", fault["msg"])
        raise OptionError(f"{fault['loc'][0] if fault['loc'] else 'study'}: {told}") from None


def _beside(settings: RobotSettings, folder: Path) -> RobotSettings:
    """A model's path is taken from where the study's file is; library names stay what they are."""
    path = folder / settings.model
    return settings.model_copy(update={"model": str(path.resolve())}) if path.is_file() else settings


def read_study(name: str | Path, check: Callable[[RobotSettings], object] | None = None) -> Study:
    """A study from a YAML file, or one that comes with Steelyard by its name; `check` may refuse a robot."""
    folder = None
    if str(name) in study_names():
        text, where = (files(__package__) / "studies" / f"{name}.yaml").read_text(encoding="utf-8"), str(name)
    else:
        path = Path(name)
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise OptionError(unknown_name("study", str(name), study_names()) + ", or a file that ends in .yaml")
        try:
            text, where, folder = path.read_text(encoding="utf-8"), str(path), path.parent
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"{path} cannot be read: {error}") from None
    study = parse_fields(Study, text, where, OptionError, "a study", EXAMPLES, MAX_CHARACTERS)
    if folder is not None:
        study = study.model_copy(update={"robots": tuple(_beside(robot, folder) for robot in study.robots)})
        if "name" not in study.model_fields_set:
            study = study.model_copy(update={"name": Path(where).stem})
    for k, robot in enumerate(study.robots if check is not None else ()):
        try:
            check(robot)  # type: ignore[misc]
        except SteelyardError as error:
            raise OptionError(f"{where}, line {line_of(text, ('robots', k))}: {error}") from None
    return study
