"""A study on disk: which recordings a result was made of, and those recordings made ready again as they were then."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..data.load import load_recording
from ..data.mapping import Mapping as ColumnMapping
from ..data.recording import Recording
from ..data.replay import steps_from
from ..errors import DataError, SteelyardError
from ..identification.alignment import shifted
from ..identification.identify import fingerprint, prepare, told_of
from ..identification.model import Experiment
from ..identification.result_file import SavedResult
from ..robot.robot import Robot
from .study import Outcome, parts_in_time
from .truth import Truth
from .validation import JointScore, Validation

KEY = "inputs"


def inputs_of(
    outcome: Outcome, learnt: Sequence[Path], judged: Sequence[Path], train_share: float, repair: bool, folder: Path
) -> dict[str, Any]:
    """What a result file says of its recordings, so that `read_again` finds and checks them; paths from its folder."""

    def entries(paths: Sequence[Path], experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
        return [
            {"path": os.path.relpath(path.resolve(), folder.resolve()), "ready": told_of(one.recording)}
            for path, one in zip(paths, experiments, strict=True)
            if isinstance(one.recording, Recording)
        ]

    return {
        "train_share": 1.0 if judged else train_share,
        "repair": repair,
        "learnt_from": entries(learnt, outcome.training),
        "judged_on": entries(judged, outcome.testing) if judged else [],
    }


@dataclass(frozen=True, eq=False)
class Again:
    """The recordings of a result, as they went into it, and what could not be had again."""

    training: tuple[Experiment, ...]
    testing: tuple[Experiment, ...]
    missing: tuple[str, ...]


def _mapping(told: Mapping[str, Any]) -> ColumnMapping | None:
    said = told.get("mapping")
    if not isinstance(said, Mapping):
        return None
    try:
        return ColumnMapping.model_validate({key: value for key, value in said.items() if key != "file"})
    except ValueError as error:
        raise DataError(f"its mapping of columns cannot be read: {error}") from None


def _ready(path: Path, told: Mapping[str, Any], robot: Robot, repair: bool, delay: float) -> Experiment:
    """A whole recording, prepared by the steps on record, before the delay is taken out."""
    raw = load_recording(path, robot, _mapping(told), repair=repair)
    if raw.about.get("sha256") != told.get("sha256"):
        raise DataError("it has changed since")
    history = list(told.get("preprocessing") or ())
    done = len(raw.about.get("preprocessing", ()))  # what the file says was done before it was written
    steps = steps_from(history[done : len(history) - 1 if delay else len(history)])
    return Experiment(prepare(raw, robot, steps or None), measured=raw)


def _late(one: Experiment, delay: float) -> Experiment:
    assert isinstance(one.recording, Recording)
    return replace(one, recording=shifted(one.recording, delay))


def _checked(one: Experiment, told: Mapping[str, Any]) -> Experiment:
    assert isinstance(one.recording, Recording)
    if told.get("numbers_sha256") not in (None, fingerprint(one.recording)):
        raise DataError("preparing it again gives other numbers than the result was made of")
    return one


def read_again(saved: SavedResult) -> Again:
    """The recordings that a result names, if they are where they were and what they were."""
    given = saved.content.get(KEY)
    if not isinstance(given, Mapping):
        return Again((), (), ("the recordings: the result does not say where they are",))
    robot, delay = saved.estimate.model.robot, float(saved.estimate.about.get("torque_delay_s") or 0.0)
    training, testing, missing = list[Experiment](), list[Experiment](), list[str]()
    for kind, made in (("learnt_from", training), ("judged_on", testing)):
        for entry in given.get(kind) or ():
            name = str(entry.get("path")) if isinstance(entry, Mapping) else "?"
            try:
                told = dict(entry["ready"])
                whole = _ready(saved.path.parent / name, told, robot, bool(given.get("repair")), delay)
                share = float(given["train_share"]) if kind == "learnt_from" else 1.0
                first, rest = parts_in_time(whole, share)
                made.append(_checked(_late(first, delay), told))
                if rest is not None:
                    testing.append(_late(rest, delay))
            except SteelyardError as error:
                missing.append(f"{name}: {error}")
            except (KeyError, TypeError, ValueError, AttributeError):
                missing.append(f"{name}: what the result says of it is not as it was written")
    return Again(tuple(training), tuple(testing), tuple(missing))


def _fields(kind: type, content: Any) -> dict[str, Any]:
    known = {field.name for field in fields(kind)}
    return {key: value for key, value in dict(content).items() if key in known}


def validation_from(content: Any) -> Validation:
    """A validation as a result file has it."""
    try:
        said = _fields(Validation, content)
        said["joints"] = tuple(JointScore(**_fields(JointScore, joint)) for joint in said["joints"])
        return Validation(**said)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError("a validation in the result is not as it was written") from None


def truth_from(content: Any) -> Truth | None:
    """The comparison with a simulation's truth as a result file has it."""
    if content is None:
        return None
    try:
        said = _fields(Truth, content)
        said["base_truth"] = tuple(float(x) for x in said["base_truth"])
        return Truth(**said)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError("'truth' in the result is not as it was written") from None
