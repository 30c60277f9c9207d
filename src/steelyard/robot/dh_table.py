"""The values in a DH table: YAML or a mapping, numbers and angles, every complaint with its place."""

import math
import re
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import yaml

from ..errors import ModelError, unknown_name

MAX_CHARACTERS = 256 * 1024
_LONGEST_NAME = 200
TABLE_KEYS = ("name", "convention", "unit", "gravity", "base", "tool", "joints")
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PI = re.compile(r"(?P<sign>[+-]?)\s*(?:(?P<factor>\d+\.?\d*|\.\d+)\s*\*?\s*)?pi(?:\s*/\s*(?P<divisor>\d+\.?\d*))?")


class _Loader(yaml.SafeLoader):
    """Safe YAML that does not let a second key of the same name win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"'{key.value[:60]}' is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def shown(value: object) -> str:
    """A value in an error: never long, never recursive."""
    if isinstance(value, str):
        return f"'{value[:60]}'"
    if isinstance(value, bool | float | None) or (isinstance(value, int) and value.bit_length() < 200):
        return "nothing" if value is None else str(value)
    return "a huge number" if isinstance(value, int) else f"of type {type(value).__name__}"


def number_of(value: object, what: str, angle_in: str | None = None) -> float:
    """A finite number; text like '-pi/2' too, where it is an angle in radians."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    elif isinstance(value, str) and _PLAIN.fullmatch(value.strip()):
        number = float(value)  # YAML takes 1e-3 for text
    elif isinstance(value, str) and angle_in and (match := _PI.fullmatch(value.strip())):
        if angle_in == "deg":
            raise ModelError(f"{what} is '{value}', with pi, but unit is deg; write degrees, or leave unit out")
        sign, factor, divisor = match["sign"], float(match["factor"] or 1), float(match["divisor"] or 1)
        number = (-1 if sign == "-" else 1) * factor * math.pi / divisor if divisor else math.nan
    if not math.isfinite(number):
        also = ", or an angle like -pi/2" if angle_in == "rad" else ""
        raise ModelError(f"{what} is {shown(value)}; give a finite number{also}")
    return math.radians(number) if angle_in == "deg" else number


def numbers(value: object, count: int, what: str, angle_in: str | None = None) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        raise ModelError(f"{what} is {shown(value)}; give {count} numbers in brackets")
    return [number_of(item, f"{what}[{k}]", angle_in) for k, item in enumerate(value)]


def mapping(value: object, valid: tuple[str, ...], what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{what} is {shown(value)}; give a mapping of {', '.join(valid)}")
    for key in value:
        if key not in valid:
            name = key if isinstance(key, str) else shown(key)
            raise ModelError(f"{what}: {unknown_name('key', name[:60], valid)}")
    return value


def text_of(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > _LONGEST_NAME:
        what = f"{what} is {shown(value).encode('unicode_escape').decode()}"
        raise ModelError(f"{what}; give a short name (in quotes where YAML takes it for something else)")
    return value


def parse_dh(text: str, where: str) -> dict[str, Any]:
    """The table in a YAML text, its keys checked at the top only."""
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"{where}: {len(text)} characters, at most {MAX_CHARACTERS} in a DH table")
    try:
        table = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or " ".join(str(error).split())[:200]
        raise ModelError(f"{where}{line}: not YAML: {what}") from None
    except RecursionError:
        raise ModelError(f"{where}: nested too deeply for a DH table") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML passes on what int() or datetime() say to an odd scalar
        raise ModelError(f"{where}: a value cannot be read: {str(error)[:200]}") from None
    if not isinstance(table, dict) or "joints" not in table:
        raise ModelError(f"{where} is not a DH table: it has no 'joints'; for other models give an MJCF or URDF file")
    return mapping(table, TABLE_KEYS, where)


def plain(value: object, where: str, depth: int = 0) -> Any:
    """A mapping from Python as YAML would have given it."""
    if depth > 6:
        raise ModelError(f"{where}: nested too deeply for a DH table")
    if isinstance(value, Mapping):
        return {key: plain(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item, where, depth + 1) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    what = f"a value of type {type(value).__name__}"
    raise ModelError(f"{where}: {what} has no place in a DH table; give numbers, texts and lists")
