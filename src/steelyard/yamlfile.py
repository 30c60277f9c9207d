"""YAML files whose fields are checked: a fault is one sentence with its file, its line and the remedy."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from .errors import SteelyardError, unknown_name

# pydantic's kinds of error, in the words of a YAML file
PLAIN = {
    "bool_type": "not true or false",
    "dict_type": "not a mapping",
    "finite_number": "not a finite number",
    "float_type": "not a number",
    "greater_than": "not above zero",
    "greater_than_equal": "below zero",
    "int_type": "not a whole number",
    "missing": "missing",
    "model_type": "not a mapping",
    "string_too_short": "an empty name",
    "string_type": "not text",
    "too_long": "too many values",
    "too_short": "too few values",
    "tuple_type": "not a list",
}


class Fields(BaseModel):
    """A value with checked fields that cannot be set again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


F = TypeVar("F", bound=Fields)


def tuple_of_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def word(value: object) -> str:
    """A name, or whatever stands in the place of one, on one line and cut where long."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text[:60])[1:-1] + ("…" if len(text) > 60 else "")


def shown(value: object) -> str:
    """A value as a message shows it: scalars as they stand, containers by their kind."""
    if value is None:
        return "empty"
    if isinstance(value, dict | list | tuple | set):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a huge number"  # Python refuses to print the longest ones
    return f"'{word(value)}'" if isinstance(value, str) else word(value)


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _nodes(text: str, where: str, error: type[SteelyardError]) -> yaml.Node | None:
    """The syntax tree, in which lines are known, after refusing what YAML reads without a word."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    seen: set[int] = set()
    stack = [root] if root else []
    while stack:
        node = stack.pop()
        if id(node) in seen:
            line = f"{where}, line {node.start_mark.line + 1}"
            raise error(f"{line}: an alias (*) repeats this; write the value out where it is used")
        seen.add(id(node))
        keys: set[str] = set()
        for key, value in _pairs(node):
            stack.append(value)
            line = f"{where}, line {key.start_mark.line + 1}"
            if key.tag != "tag:yaml.org,2002:str":
                name = f"'{word(key.value)}'" if isinstance(key, yaml.ScalarNode) else "a list or a mapping"
                raise error(f"{line}: YAML does not read {name} as a name; put the name in quotes")
            if key.value in keys:
                raise error(f"{line}: '{word(key.value)}' is given twice; keep one of the two")
            keys.add(key.value)
        if isinstance(node, yaml.SequenceNode):
            stack += node.value
    return root


def _line(root: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """The line of the deepest part of `location` that stands in the file."""
    node, line = root, 0
    for part in location:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line if node else line
            continue
        found = [(key, value) for key, value in _pairs(node) if key.value == str(part)]
        if not found:
            break
        line, node = found[0][0].start_mark.line, found[0][1]
    return line + 1


def line_of(text: str, location: tuple[int | str, ...]) -> int:
    """The line of a field, for faults that are found after reading."""
    return _line(yaml.compose(text, Loader=yaml.SafeLoader), location)


def _schema_in(annotation: Any) -> type[BaseModel] | None:
    """The checked fields that an annotation holds, alone or in a container."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _schema_in(part))), None)


def _valid_fields(schema: type[BaseModel], location: tuple[int | str, ...]) -> Iterable[str]:
    """The fields that could stand where a location ends."""
    for part in location[:-1]:
        if part in schema.model_fields:  # others are names and numbers of items
            schema = _schema_in(schema.model_fields[str(part)].annotation) or schema
    return tuple(schema.model_fields)


def _sentence(fault: ErrorDetails, schema: type[BaseModel], examples: Mapping[str, str]) -> str:
    """What is wrong with one field, and the remedy."""
    kind, location, value = fault["type"], fault["loc"], fault["input"]
    field = ".".join(word(part) for part in location if part != "[key]")
    if kind == "extra_forbidden":
        return unknown_name("field", word(location[-1]), _valid_fields(schema, location))
    if kind == "value_error":  # ours, with its own remedy
        return f"{field}: {fault['ctx']['error']}" if field else f"{fault['ctx']['error']}"
    if kind == "literal_error":
        return f"{field} is {shown(value)}; valid: {fault['ctx']['expected']}"
    problem = PLAIN.get(kind, fault["msg"])
    if kind == "greater_than_equal" and fault["ctx"]["ge"] != 0:
        problem = f"below {fault['ctx']['ge']:g}"
    problem = f"{field} is {problem}" if kind == "missing" else f"{field} is {shown(value)}, {problem}"
    if kind == "float_type" and isinstance(value, str):
        return f"{problem}; write it without quotes, and an exponent as in 1.0e+3"
    example = examples.get(str(location[0]) if location else "", next(iter(examples.values())))
    return f"{problem}; write it like {example}"


def parse_fields(
    schema: type[F],
    text: str,
    where: str,
    error: type[SteelyardError],
    kind: str,
    examples: Mapping[str, str],
    max_characters: int,
) -> F:
    """The checked fields in a YAML text.

    `where` names the file in errors, `kind` what it is to be, `examples` has a line for every field (the first one
    stands for the file as a whole).
    """
    if len(text) > max_characters:
        raise error(f"{where}: {len(text)} characters, at most {max_characters}; is this {kind} at all?")
    try:
        root = _nodes(text, where, error)
        data = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(fault, "problem", None) or " ".join(str(fault).split())
        raise error(f"{where}{line}: not YAML: {what}; mend it and save it as plain UTF-8 text") from None
    except RecursionError:
        raise error(f"{where}: nested too deeply; {kind} has four levels") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as fault:
        # PyYAML passes on what int(), datetime() and others say to an odd scalar
        raise error(f"{where}: a value cannot be read ({fault}); use plain names, numbers and lists") from None
    data = {} if data is None else data
    if not isinstance(data, dict):
        example = next(iter(examples.values()))
        raise error(f"{where}: holds {shown(data)}, not fields; write for example {example}")
    try:
        return schema.model_validate(data)
    except ValidationError as invalid:
        first, *others = invalid.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        line = f", line {_line(root, first['loc'])}" if first["loc"] else ""
        raise error(f"{where}{line}: {_sentence(first, schema, examples)}{more}") from None
