"""Results on disk: a YAML file that people can read and that reads back as the same `Estimate`."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..errors import DataError
from ..files import whole_or_not
from ..robot.identity import describe_robot, robot_described
from ..robot.robot import frozen
from . import readings as _readings
from . import terms as _terms
from .estimate import Estimate, JointResidual, ShapeValue
from .model import LinearModel
from .problem import DataSet

FORMAT = "steelyard result 1"
_MOST_BYTES = 64 << 20
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TERMS = {
    name: found
    for module, ending in ((_terms, "Term"), (_readings, "Reading"))
    for name, found in vars(module).items()
    if name.endswith(ending) and not name.startswith("_")
}


class _Dumper(yaml.SafeDumper):
    """Rows of numbers on one line."""


def _short_list(dumper: _Dumper, data: list) -> yaml.Node:
    flow = all(not isinstance(item, dict | list) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


_Dumper.add_representer(list, _short_list)


class _Inline(dict):
    """A mapping that is written on one line."""


_Dumper.add_representer(
    _Inline, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)
)


def plain(value: Any) -> Any:
    """Numpy, tuples and mappings as what YAML has."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, _Inline):
        return _Inline({str(key): plain(item) for key, item in value.items()})
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    return str(value)


def write_yaml(content: Mapping[str, Any], path: str | Path) -> Path:
    """Write YAML whole or not at all."""
    path = Path(path)
    text = yaml.dump(plain(content), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    with whole_or_not(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def result_content(estimate: Estimate, folder: Path | None = None, more: Mapping[str, Any] | None = None) -> dict:
    """All that a result file says."""
    base = estimate.model.base
    data = estimate.data_set
    content: dict[str, Any] = {
        "format": FORMAT,
        "verdict": None,
        "method": estimate.method,
        "settings": estimate.settings,
        "converged": estimate.converged,
        "message": estimate.message,
        "iterations": estimate.iterations,
        "seconds": round(estimate.seconds, 6),
        "robot": describe_robot(estimate.model.robot, folder),
        "terms": [_Inline(kind=type(term).__name__, **asdict(term)) for term in estimate.model.terms],  # type: ignore[call-overload]
        "fixed": dict(estimate.model.fixed),
        "loads": [list(load) for load in estimate.model.loads],
        "dead_zone": estimate.model.dead_zone,
        "parameters": [
            _Inline(name=name, value=value, unit=unit, deviation=deviation, nominal=nominal)
            for name, value, unit, deviation, nominal in zip(
                estimate.names, estimate.parameters, estimate.units, estimate.deviation, estimate.nominal, strict=True
            )
        ],
        "base_parameters": [
            _Inline(value=value, deviation=deviation, percent=percent, name=name)
            for name, value, deviation, percent in zip(
                estimate.base_names,
                estimate.base_parameters,
                estimate.base_deviation,
                estimate.base_relative,
                strict=True,
            )
        ],
        "nonlinear_parameters": [_Inline(asdict(shape)) for shape in estimate.shapes],
        "not_told_apart": {
            "without_effect": [estimate.names[k] for k in base.without_effect],
            "only_in_combinations": [estimate.names[k] for k in base.regrouped],
            "not_shown_by_the_data": [str(direction) for direction in data.blind],
        },
        "physical": {
            "feasible": not estimate.invalid,
            "why_not": [str(reason) for reason in estimate.invalid],
        },
        "data": {
            "rows": data.rows,
            "rank": data.rank,
            "base_rank": data.base_rank,
            "condition": data.condition,
            "condition_unscaled": data.condition_unscaled,
            "column_norms": data.column_norms,
        },
        "residuals": [_Inline(asdict(joint)) for joint in estimate.residuals],
        "about": estimate.about,
        **(more or {}),
        "base_covariance": estimate.base_covariance,
        "blind": estimate.blind.T,
    }
    if content["verdict"] is None:
        del content["verdict"]
    return content


def save_result(estimate: Estimate, path: str | Path, more: Mapping[str, Any] | None = None) -> Path:
    """Write an estimate, with what else is to stand beside it (validation, verdict, the command)."""
    return write_yaml(result_content(estimate, Path(path).parent, more), path)


@dataclass(frozen=True, eq=False)
class SavedResult:
    """A result as read back: the estimate, all that the file says, and what has changed since."""

    estimate: Estimate
    content: Mapping[str, Any]
    notes: tuple[str, ...]
    path: Path


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML mapping from a file, safely."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.stat().st_size > _MOST_BYTES:
        raise DataError(f"{path} has {path.stat().st_size >> 20} MB; a result has at most {_MOST_BYTES >> 20}")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506  (safe, and fast where it can be)
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise DataError(f"{path}{where}: not YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no mapping; a file written by `steelyard identify` is needed")
    return content


def _numbers(content: Mapping[str, Any], key: str, path: Path) -> list[Mapping[str, Any]]:
    rows = content.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
        raise DataError(f"{path}: '{key}' is not a list of named values")
    return rows


def _column(rows: list[Mapping[str, Any]], key: str, path: Path) -> np.ndarray:
    try:
        return frozen([float(row[key]) for row in rows])
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path}: a value of '{key}' is missing or not a number") from None


def _term(spec: Mapping[str, Any], path: Path) -> Any:
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in spec.items()}
    kind = settings.pop("kind", None)
    if kind not in _TERMS:
        raise DataError(f"{path}: no term '{kind}'; valid: {', '.join(_TERMS)}")
    try:
        return _TERMS[kind](**settings)
    except TypeError:
        raise DataError(f"{path}: the settings of {kind} do not fit: {settings}") from None


def read_result(path: str | Path) -> SavedResult:
    """Read what `save_result` wrote; every number comes back as it was."""
    path = Path(path)
    content = read_yaml(path)
    if content.get("format") != FORMAT:
        raise DataError(f"{path} is not a result of Steelyard's: it lacks 'format: {FORMAT}'")
    if not isinstance(content.get("robot"), dict):
        raise DataError(f"{path}: 'robot' is missing")
    robot, notes = robot_described(content["robot"], path.parent)
    try:
        loads = tuple((str(name), str(body)) for name, body in content.get("loads", ()))
        fixed = {str(name): float(value) for name, value in (content.get("fixed") or {}).items()}
        dead_zone = None if content.get("dead_zone") is None else frozen(content["dead_zone"])
    except (TypeError, ValueError, AttributeError):
        raise DataError(f"{path}: 'loads', 'fixed' or 'dead_zone' is not as it was written") from None
    model = LinearModel(robot, tuple(_term(spec, path) for spec in content.get("terms", ())), fixed, loads, dead_zone)
    rows, base = _numbers(content, "parameters", path), _numbers(content, "base_parameters", path)
    if tuple(row["name"] for row in rows) != model.names or len(base) != model.rank:
        raise DataError(f"{path}: its parameters are not those of the robot it names; was the model changed?")
    data = content.get("data") or {}
    known = {field.name for field in fields(JointResidual)}
    try:
        covariance = np.array(content.get("base_covariance"), dtype=float).reshape(model.rank, model.rank)
        blind = np.array(content.get("blind") or np.zeros((0, model.rank)), dtype=float).reshape(-1, model.rank).T
        residuals = tuple(
            JointResidual(**{key: value for key, value in joint.items() if key in known})
            for joint in content.get("residuals", ())
        )
        shapes = tuple(ShapeValue(**shape) for shape in content.get("nonlinear_parameters") or ())
        data_set = DataSet(
            rows=int(data.get("rows", 0)),
            rank=int(data.get("rank", 0)),
            base_rank=int(data.get("base_rank", model.rank)),
            condition=float(data.get("condition", math.nan)),
            condition_unscaled=float(data.get("condition_unscaled", math.nan)),
            column_norms=dict(data.get("column_norms") or {}),
            blind=(),
        )
    except (TypeError, ValueError, AttributeError):
        raise DataError(f"{path}: covariance, residuals or data are not as they were written") from None
    estimate = Estimate(
        method=str(content.get("method")),
        settings=content.get("settings") or {},
        model=model,
        parameters=_column(rows, "value", path),
        deviation=_column(rows, "deviation", path),
        base_parameters=_column(base, "value", path),
        base_covariance=frozen(covariance),
        blind=frozen(blind),
        converged=bool(content.get("converged")),
        message=str(content.get("message")),
        iterations=int(content.get("iterations", 0)),
        seconds=float(content.get("seconds", 0.0)),
        residuals=residuals,
        data_set=data_set,
        about=content.get("about") or {},
        shapes=shapes,
    )
    return SavedResult(estimate, content, notes, path)
