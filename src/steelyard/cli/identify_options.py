"""What the options of `steelyard identify` mean: texts become settings objects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.decimation import Decimation
from ..data.filters import Butterworth
from ..data.preprocess import default_steps
from ..data.recording import Recording
from ..errors import OptionError
from ..identification.closed_loop.loops import source_of
from ..identification.estimators import ESTIMATORS, ML, ON_REQUEST, WLS, Rounds, estimator_named
from ..identification.estimators.physical import Physical
from ..identification.fit import Estimator
from ..identification.model import Experiment, Load
from ..identification.physical.limits import Equality, mirrored_in, symmetric_about
from ..identification.shapes import shapes_named
from ..robot.feasibility import Ball, Box
from ..robot.inertia import from_mass_com_inertia
from ..robot.robot import Robot
from .options import names, numbers


def methods_named(text: str) -> tuple[Estimator, ...]:
    """`WLS,IRLS` or `all` as estimators with their usual settings."""
    if text.strip().lower() == "all":
        return tuple(estimator_named(name) for name in ESTIMATORS if name not in ON_REQUEST)
    asked = names(text) or []
    if not asked:
        raise OptionError(f"no algorithm was named; valid: {', '.join(ESTIMATORS)}, or all")
    return tuple(estimator_named(name) for name in asked)


def with_shapes(methods: Sequence[Estimator], nonlinear: list[str] | None) -> tuple[Estimator, ...]:
    """ML, alone or in the last of three rounds, told what it is to seek where torque is not linear."""
    if not nonlinear:
        return tuple(methods)
    shapes = shapes_named(nonlinear)
    if not all(isinstance(method, ML | Rounds) for method in methods):
        raise OptionError("--nonlinear is sought by ML alone; add --algorithm ML (or Rounds)")
    seeker = ML(shapes=shapes)
    return tuple(seeker if isinstance(method, ML) else Rounds(inner=seeker) for method in methods)


def with_noise(methods: Sequence[Estimator], noise: str | None) -> tuple[Estimator, ...]:
    """WLS told what is known of the errors."""
    if noise is None:
        return tuple(methods)
    if not any(isinstance(method, WLS) for method in methods):
        raise OptionError("--noise is a setting of WLS; add --algorithm WLS")
    return tuple(replace(m, noise=noise) if isinstance(m, WLS) else m for m in methods)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PhysicalTexts:
    """The options about parameters that bodies can have, as they were typed."""

    physical: bool = False
    prior: str | None = None
    prior_weight: float | None = None
    epsilon: float | None = None
    within: str | None = None
    com: tuple[str, ...] = ()
    total_mass: float | None = None
    bound: tuple[str, ...] = ()
    symmetric: tuple[str, ...] = ()

    @property
    def asked(self) -> bool:
        """One of the further options asks for a physical fit, too."""
        return self != PhysicalTexts()

    def around(self, methods: Sequence[Estimator]) -> tuple[Estimator, ...]:
        """The methods, with parameters that bodies can have where that was asked for."""
        if not self.asked:
            return tuple(methods)
        settings: dict[str, Any] = {
            "weight": self.prior_weight,
            "region": self.within,
            "total_mass": self.total_mass,
            "com": dict(map(_place, self.com)),
            "bounds": dict(map(_bound, self.bound)),
            "equalities": tuple(equality for text in self.symmetric for equality in _symmetry(text)),
        }
        if self.prior is not None:
            settings["prior"] = self.prior
        if self.epsilon is not None:
            settings["smallest"] = self.epsilon
        return tuple(Physical(inner=method, **settings) for method in methods)


def _two(text: str, separator: str, option: str, example: str) -> tuple[str, str]:
    left, found, right = text.rpartition(separator)
    if not found or not left.strip() or not right.strip():
        raise OptionError(f"{option} takes {example}, not '{text}'")
    return left.strip(), right.strip()


def _place(text: str) -> tuple[str, Box | Ball]:
    """`link2=-0.1:0.1,-0.1:0.1,0:0.4` is a box, `link2=0,0,0.2,0.1` a ball."""
    example = "BODY=X0:X1,Y0:Y1,Z0:Z1 (a box) or BODY=X,Y,Z,RADIUS (a ball)"
    body, place = _two(text, "=", "--com", example)
    if ":" not in place:
        x, y, z, radius = numbers(place, 4, f"--com {body}=").tolist()
        return body, Ball((x, y, z), radius)
    parts = place.split(",")
    if len(parts) != 3:
        raise OptionError(f"--com takes {example}, not '{text}'")
    low, high = np.array([span("--com", part) for part in parts]).T.tolist()
    return body, Box(tuple(low), tuple(high))


def span(option: str, text: str) -> tuple[float, float]:
    """`1.5:3` as two numbers; nothing on a side is no limit there."""
    low, colon, high = text.partition(":")
    try:
        found = (float(low) if low.strip() else -np.inf, float(high) if high.strip() else np.inf)
    except ValueError:
        found = (np.nan, np.nan)
    if not colon or not found[0] <= found[1]:
        raise OptionError(f"{option} takes FROM:TO, the smaller first, not '{text}'")
    return found


def _bound(text: str) -> tuple[str, tuple[float, float]]:
    name, limits = _two(text, "=", "--bound", "NAME=LOW:HIGH as link7.m=0.5:0.9")
    return name, span("--bound", limits)


def _symmetry(text: str) -> tuple[Equality, ...]:
    example = "BODY:x, y or z (an axis) or BODY:xy, xz or yz (a mirror plane)"
    body, how = _two(text, ":", "--symmetric", example)
    if len(how) == 1:
        return symmetric_about(body, how)
    return mirrored_in(body, how)


def load_of(text: str, option: str = "--load") -> Load:
    """`hand:1.2,0,0,0.1` or with three or six moments about the centre of mass, as a known load."""
    example = "BODY:KG,X,Y,Z[,IXX,IYY,IZZ[,IXY,IXZ,IYZ]]"
    body, values = _two(text, ":", option, example)
    count = len(values.split(","))
    if count not in (1, 4, 7, 10):
        raise OptionError(f"{option} takes {example} (1, 4, 7 or 10 numbers), not '{values}'")
    given = np.concatenate([numbers(values, count, f"{option} {body}:"), np.zeros(10 - count)])
    (xx, yy, zz), (xy, xz, yz) = given[4:7], given[7:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if given[0] < 0:
        raise OptionError(f"{option} {text}: a load of {given[0]:g} kg; give 0 or more")
    return Load(body, from_mass_com_inertia(float(given[0]), given[1:4], inertia))


def loads_by_file(texts: Sequence[str], files: Sequence[Path]) -> dict[Path, Load]:
    """`run.csv=hand:1.2,0,0,0.1` as what the robot carried in which file."""
    found: dict[Path, Load] = {}
    for text in texts:
        file, load = _two(text, "=", "--load", "FILE=BODY:KG,X,Y,Z")
        mine = [path for path in files if file in (str(path), path.name)]
        if not mine:
            raise OptionError(f"--load names '{file}', which is not among {', '.join(map(str, files))}")
        found |= dict.fromkeys(mine, load_of(load))
    return found


def carrying(recording: Recording, load: Load | None) -> Recording | Experiment:
    return recording if load is None else Experiment(recording, load)


def coupled_motors(terms: str | None, given: Sequence[Recording | Experiment]) -> bool:
    """Whether motors that turn two joints can be felt: not where none were asked for, nor in our simulation."""
    bare = [one.recording if isinstance(one, Experiment) else one for one in given]
    simulated = all(isinstance(one, Recording) and source_of(one) == "simulation" for one in bare)
    return names(terms) != [] and not simulated


def decimation_of(text: str, cutoff_hz: float | None) -> Decimation | str | None:
    if text == "auto" and cutoff_hz is None:
        return "auto"
    if text == "none":
        return None
    try:
        factor = 1 if text == "auto" else int(text)
    except ValueError:
        raise OptionError(f"--decimate takes auto, none or a whole number, not '{text}'") from None
    if cutoff_hz is None:
        raise OptionError("--decimate with a number needs the cut-off of its low-pass too: --decimation-cutoff HZ")
    return Decimation(cutoff_hz, factor)


def fixed_of(texts: list[str] | None) -> dict[str, float]:
    values = {}
    for text in texts or ():
        name, value = _two(text, "=", "--fix", "NAME=VALUE as link7.m=0.73")
        try:
            values[name] = float(value)
        except ValueError:
            raise OptionError(f"--fix takes NAME=VALUE as link7.m=0.73, not '{text}'") from None
    return values


@dataclass(frozen=True)
class Cut:
    """The usual steps with a cut-off of the user's, made for each recording."""

    cutoff_hz: float | None = None
    torque_hz: float | None = None  # positions and torque through one low-pass

    def __call__(self, recording: Recording, robot: Robot) -> tuple:
        cutoff = self.cutoff_hz if self.torque_hz is None else self.torque_hz
        filter_step = Butterworth(cutoff_hz=cutoff, torque=self.torque_hz is not None)
        return tuple(filter_step if isinstance(s, Butterworth) else s for s in default_steps(recording, robot))


def steps_of(choice: str, cutoff_hz: float | None, torque_hz: float | None = None) -> Any:
    if cutoff_hz is not None and torque_hz is not None:
        raise OptionError("--cutoff filters positions, --torque-cutoff positions and torque alike; choose one")
    if choice == "none":
        if cutoff_hz is not None or torque_hz is not None:
            raise OptionError("--cutoff filters, and --preprocessing none does not; choose one")
        return None
    if choice != "auto":
        raise OptionError(f"--preprocessing is auto or none, not '{choice}'")
    return "auto" if cutoff_hz is None and torque_hz is None else Cut(cutoff_hz, torque_hz)
