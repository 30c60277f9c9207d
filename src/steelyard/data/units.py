"""Units that recordings come in, as factors to SI."""

import math
import re

_TURN = 2 * math.pi
POSITION = {"rad": 1.0, "deg": math.pi / 180, "mrad": 1e-3, "turn": _TURN, "m": 1.0, "mm": 1e-3, "cm": 1e-2}
VELOCITY = {f"{unit}/s": factor for unit, factor in POSITION.items()} | {"rpm": _TURN / 60, "turn/min": _TURN / 60}
ACCELERATION = {f"{unit}/s2": factor for unit, factor in POSITION.items()}
TORQUE = {"nm": 1.0, "mnm": 1e-3, "knm": 1e3, "n": 1.0, "kn": 1e3}
CURRENT = {"a": 1.0, "ma": 1e-3}
TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}
OF = {
    "time": TIME,
    "q": POSITION,
    "qd": VELOCITY,
    "qdd": ACCELERATION,
    "tau": TORQUE | CURRENT,
}
# A rate as a name ends in it, where no brackets say that it is a unit: deg/s, rad_s, rad_per_s2
_RATE = re.compile(r"(?<=[^\W_])[\s_.-]+(mrad|rad|deg|turn|mm|cm|m)(?:/|_per_|_)s(?:ec)?(?:\^?([2²]))?\s*$", re.I)
_WORDS = {
    "degree": "deg", "degrees": "deg", "°": "deg", "radian": "rad", "radians": "rad", "rads": "rad", "turns": "turn",
    "rev": "turn", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "millis": "ms",
    "milliseconds": "ms", "usec": "us", "µs": "us", "μs": "us", "nsec": "ns", "nanoseconds": "ns", "amp": "a",
    "amps": "a", "rev/min": "rpm", "newtonmeter": "nm",
}  # fmt: skip


def rate_at_end(name: str) -> tuple[str, str | None]:
    """A name without the rate that it ends in, and that rate."""
    found = _RATE.search(name)
    return (name, None) if found is None else (name[: found.start()], f"{found[1]}/s" + ("2" if found[2] else ""))


def spelled(unit: str) -> str:
    """A unit in the one spelling of the tables: `N·m`, `N*m` and `Nm` are one, `rad/s²`, `rad/s^2` too."""
    plain = re.sub(r"[\s·*.⋅^-]", "", unit.strip().lower()).replace("²", "2")
    head, slash, tail = plain.partition("/")
    if plain in _WORDS:
        return _WORDS[plain]
    return _WORDS.get(head, head) + slash + tail


def factor(quantity: str, unit: str) -> float | None:
    """What a number in this unit is multiplied with; None where the quantity has no such unit."""
    return OF.get(quantity, {}).get(spelled(unit))


def is_unit(word: str) -> bool:
    """Whether a word is a unit of anything that is read here."""
    return any(spelled(word) in known for known in OF.values())


def is_current(unit: str) -> bool:
    return spelled(unit) in CURRENT
