"""The estimators of a study by name: groups, settings, and the list of the field's own benchmark."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaError, ValidationError

from ...errors import OptionError, unknown_name
from ...identification.estimators import ESTIMATORS, Physical
from ...identification.fit import Estimator

Method = tuple[str, Mapping[str, Any]]
PHYSICAL = "Physical "  # before the name of an estimator: with bodies that can exist

# Least squares and its kin: they solve the regression and do not simulate. Which of them come to the same answer from
# any initial guess, when the data show all base parameters, is a matter of their mathematics.
DIRECT = ("OLS", "WLS", "IRLS", "TLS", "ML", "MAP", "Ridge")
FROM_DATA_ALONE = ("OLS", "WLS", "IRLS", "TLS")

_FILTERED = ("OLS", "WLS", "IRLS", "TLS")
_BUILT_UPON = ("OLS", "WLS", "IRLS", "IV", "DIDIM")
# The 37 variants of BIRDy that can be set against one another in simulation; drive gains (two more) need a known load.
BIRDY: tuple[Method, ...] = (
    *((name, {"preprocessing": [how]}) for name in _FILTERED for how in ("none", "butterworth")),
    *((name, {}) for name in ("ML", "IV", "DIDIM", "CLOE", "CLIE", "Adaline", "HopfieldTank")),
    *((name, {}) for name in ("EKF", "SREKF", "UKF", "SRUKF", "CDKF", "SRCDKF", "PF")),
    *(
        (PHYSICAL + name, {"prior": prior})
        for name in _BUILT_UPON
        for prior in ("euclidean", "entropic", "pullback")
    ),
)  # fmt: skip


def _plain(*names: str) -> tuple[Method, ...]:
    return tuple((name, {}) for name in names)


GROUPS: Mapping[str, tuple[Method, ...]] = {
    "linear": _plain("OLS", "WLS", "IRLS", "TLS", "ML", "Physical WLS"),
    "simulating": _plain("IV", "DIDIM", "CLOE", "CLIE"),
    "filters": _plain("RLS", "EKF", "SREKF", "UKF", "SRUKF", "CDKF", "SRCDKF", "PF"),
    "networks": _plain("Adaline", "HopfieldTank"),
    "all": _plain(*ESTIMATORS, "Physical WLS"),
    "birdy": BIRDY,
}


def estimator_names() -> tuple[str, ...]:
    """What may stand in a study's list of estimators."""
    return (*ESTIMATORS, *(PHYSICAL + name for name in _BUILT_UPON), *GROUPS)


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


def label_of(name: str, settings: Mapping[str, Any]) -> str:
    """An estimator's name with what was set."""
    told = ", ".join(f"{key}={value}" for key, value in sorted(settings.items()))
    return f"{name}({told})" if told else name


def _checked(cls: type, name: str, key: str, value: Any) -> Any:
    """A setting from a file, of the type that its field has."""
    given = tuple(value) if isinstance(value, list) else value
    try:
        kind = TypeAdapter(get_type_hints(cls)[key], config=ConfigDict(strict=True, arbitrary_types_allowed=True))
        return kind.validate_python(given)
    except ValidationError as fault:
        told = fault.errors(include_url=False)[0]["msg"]
        raise OptionError(f"{key} of {name} is {value!r}: {told[:1].lower() + told[1:]}") from None
    except (PydanticUserError, SchemaError, NameError):
        raise OptionError(f"{key} of {name} cannot be set in a study; leave it out") from None


def _made(cls: type, name: str, settings: Mapping[str, Any], others: tuple[str, ...] = ()) -> Any:
    known = [field.name for field in fields(cls)]
    for key in settings:
        if key not in known:
            raise OptionError(unknown_name(f"setting of {name}", key, sorted([*known, *others])))
    return cls(**{key: _checked(cls, name, key, value) for key, value in settings.items()})


def make_estimator(name: str, settings: Mapping[str, Any]) -> Estimator:
    """The estimator of a study; `Physical X` takes settings of its own and those of X."""
    inner = name.removeprefix(PHYSICAL)
    if inner not in ESTIMATORS:
        raise OptionError(unknown_name("estimator", name, estimator_names()))
    cls = ESTIMATORS[inner]
    if inner == name:
        made: Estimator = _made(cls, name, settings)
        return made
    own = [field.name for field in fields(Physical) if field.name != "inner"]
    below = {key: value for key, value in settings.items() if key not in own}
    above = {key: value for key, value in settings.items() if key in own}
    built: Estimator = _made(Physical, name, {**above}, tuple(own))
    within: Estimator = _made(cls, name, below, tuple(own))
    return Physical(**{**{field: getattr(built, field) for field in above}, "inner": within})


def is_direct(method: Method) -> bool:
    """Whether it solves the regression, rather than simulate or filter."""
    return method[0].removeprefix(PHYSICAL) in DIRECT


def spelt_out(name: str, settings: Mapping[str, Any]) -> tuple[Method, ...]:
    """A group's estimators, or the one that is named."""
    return GROUPS.get(name, ((name, settings),))
