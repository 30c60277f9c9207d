"""`Job`: a whole study as one YAML file says it, checked before anything is computed."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ...errors import OptionError, unknown_name
from ...excitation.criteria import CRITERIA
from ...identification.fit import Estimator
from ...identification.terms import TERMS
from ...physics.friction import FRICTION_NAMES
from ...yamlfile import Fields, line_of, parse_fields, tuple_of_list
from ..campaign.methods import make_estimator, pairs_of
from ..campaign.settings import Count, NotNegative, Positive

MAX_CHARACTERS = 50_000
EXAMPLES = {  # the first stands for the file as a whole
    "robot": "robot: {model: panda}",
    "excitation": "excitation: {period: 10, harmonics: 5}",
    "simulation": "simulation: {friction: coulomb-viscous, torque_noise: 0.1}",
    "data": "data: {recordings: [run.csv], validation: [other.csv]}",
    "preprocessing": "preprocessing: {cutoff_hz: 10}",
    "estimators": "estimators: [WLS, {IRLS: {loss: tukey}}, Physical WLS]",
    "terms": "terms: [cubic]",
    "fixed": "fixed: {link7.m: 0.73}",
    "validation": "validation: {share: 0.2}",
    "report": "report: {page: true, model: identified.xml}",
}
_FRICTION_COLUMNS = ("coulomb", "offset")


def _names_or_one(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple_of_list(value)


Words = Annotated[tuple[str, ...], BeforeValidator(_names_or_one)]
Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0)]
PerJoint = Annotated[NotNegative | tuple[NotNegative, ...], BeforeValidator(tuple_of_list)]


class RobotSettings(Fields):
    """Which robot, and what of it is identified."""

    model: str
    lock: dict[str, float | None] = Field(default_factory=dict)
    bodies: Words | None = None
    friction: Words = ("auto",)
    gravity: Annotated[tuple[float, float, float], BeforeValidator(tuple_of_list)] | None = None


class ExcitationSettings(Fields):
    """Two motions are designed, one to learn from and one to judge by."""

    period: Positive = 10.0
    harmonics: Count = 5
    criterion: Literal[tuple(CRITERIA)] = "logdet"  # type: ignore[valid-type]
    starts: Count = 2
    rounds: Count = 8
    margin: Share = 0.1
    rate_hz: Positive = 100.0
    seed: Seed = 0


class SimulationSettings(Fields):
    """The experiment where there is no robot; the true one differs from its model: there is something to find."""

    model_error: NotNegative = 0.15
    friction: Literal[FRICTION_NAMES] = "coulomb-viscous"  # type: ignore[valid-type]
    position_noise: PerJoint = 1e-6
    torque_noise: PerJoint | None = None
    bandwidth_hz: Positive = 4.0
    control_hz: Positive = 1000.0
    seed: Seed = 1


class DataSettings(Fields):
    """What a robot did, from files beside the study."""

    recordings: Annotated[Words, Field(min_length=1)]
    validation: Words = ()
    mapping: str | None = None
    repair: bool = False


class DecimationSettings(Fields):
    cutoff_hz: Positive
    factor: Count


class PreprocessingSettings(Fields):
    """As the options of `steelyard identify`."""

    cutoff_hz: Positive | None = None
    decimation: Literal["auto", "none"] | DecimationSettings = "auto"
    delay: Literal["auto"] | float = "auto"


class ValidationSettings(Fields):
    """Where no recording is given to judge by, the last part of the motion is held out."""

    share: Annotated[float, Field(ge=0, le=0.9)] = 0.2


class ReportSettings(Fields):
    page: bool = True
    model: str | None = "identified.xml"


class Job(Fields):
    """Everything that a study does, from the robot to the report."""

    robot: RobotSettings
    excitation: ExcitationSettings | None = None
    simulation: SimulationSettings | None = None
    data: DataSettings | None = None
    preprocessing: PreprocessingSettings = PreprocessingSettings()
    estimators: Annotated[tuple[tuple[str, dict[str, Any]], ...], BeforeValidator(pairs_of), Field(min_length=1)] = (
        ("WLS", {}),
        ("Physical WLS", {}),
    )
    terms: Words = ()
    fixed: dict[str, float] = Field(default_factory=dict)
    validation: ValidationSettings = ValidationSettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _one_source(self) -> "Job":
        if self.simulation is not None and self.data is not None:
            raise ValueError("simulation and data are both given; keep one of them")
        if self.simulation is not None and self.excitation is None:
            raise ValueError("a simulation needs a motion; add excitation: {period: 10}")
        if self.excitation is None and self.data is None:
            raise ValueError("there is nothing to do; give data: {recordings: [run.csv]}, or excitation and simulation")
        return self

    def methods(self) -> tuple[Estimator, ...]:
        return tuple(make_estimator(name, settings) for name, settings in self.estimators)


def _check_names(job: Job, text: str, where: str) -> None:
    """What only the lists of estimators, terms and columns tell, each fault with its line."""

    def at(*location: int | str) -> str:
        return f"{where}, line {line_of(text, location)}: "

    for k, name in enumerate(job.terms):
        if name not in TERMS:
            raise OptionError(at("terms", k) + unknown_name("term", name, TERMS))
    columns = job.robot.friction
    if columns not in (("auto",), ("none",)):
        for k, name in enumerate(columns):
            if name not in _FRICTION_COLUMNS:
                valid = ("auto", "none", *_FRICTION_COLUMNS)
                raise OptionError(at("robot", "friction", k) + unknown_name("friction column", name, valid))
    called: list[str] = []
    for k, (name, settings) in enumerate(job.estimators):
        try:
            called.append(make_estimator(name, settings).name)
        except OptionError as error:
            raise OptionError(at("estimators", k) + str(error)) from None
        if called[-1] in called[:-1]:
            raise OptionError(at("estimators", k) + f"{called[-1]} is asked for twice; keep one of the two")


def parse_job(text: str, where: str) -> Job:
    """The study in a YAML text."""
    job = parse_fields(Job, text, where, OptionError, "a study", EXAMPLES, MAX_CHARACTERS)
    _check_names(job, text, where)
    return job


def read_job(path: Path) -> Job:
    """The study in a file."""
    try:
        return parse_job(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise OptionError(f"{path}: no such file; `steelyard run --example` prints one to begin with") from None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} cannot be read: {error}") from None


def built_in(name: str) -> str:
    """The text of a study that comes with Steelyard: example or demo."""
    return (files(__package__) / f"{name}.yaml").read_text(encoding="utf-8")
