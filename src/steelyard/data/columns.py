"""Which column is what: by the names that people give them, or by their number where they have none.

A name is read as a quantity, a joint and perhaps a unit: `q0`, `q_0`, `q[0]`, `pos_1 [deg]`, `joint1.position`,
`tau_joint1`, `/joint_states/elbow/effort`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import DataError
from . import units

QUANTITIES = ("q", "qd", "qdd", "tau")
_SPELLED = {
    "q": "q qpos pos position positions angle angles theta jointpos jointposition jointpositions",
    "qd": "qd dq qdot dotq qvel dtheta thetadot vel velocity velocities speed speeds omega jointvel jointvelocity "
    "jointvelocities",
    "qdd": "qdd ddq qddot ddotq qacc ddtheta thetaddot acc accel acceleration accelerations jointacc "
    "jointacceleration jointaccelerations",
    "tau": "tau torque torques trq effort efforts eff moment moments jointtorque jointtorques jointeffort tauj",
    "current": "current currents curr cur i amps motorcurrent motorcurrents",
    "time": "t time times timestamp timestamps stamp secs sec seconds elapsed elapsedtime",
}
SPELLINGS = {word: quantity for quantity, words in _SPELLED.items() for word in words.split()}
_NOISE = {"joint", "joints", "j", "jnt", "axis", "actual", "act", "measured", "meas", "msr", "feedback", "fbk", "field"}
_NOISE |= {"state", "states", "robot", "arm", "value"}
_UNIT = re.compile(r"[\[(]\s*([^\[\]()]*[A-Za-zµμ°][^\[\]()]*)[\])]\s*$")
_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_MORE = re.compile(r"more\.(.+?)(?:\[(\d+)\])?")
GREEK = {"τ": "tau", "θ": "theta", "ω": "omega"}
Key = int | str


@dataclass(frozen=True)
class Title:
    """What the name of a column says."""

    quantity: str
    scale: float
    number: int | None  # of the joint, where it is numbered
    joint: str | None  # the joint's name among those known
    label: str | None  # what else could be the joint's name


@dataclass(frozen=True)
class Columns:
    """Where the quantities stand in a table, a column a joint, and what their numbers are multiplied with."""

    places: dict[str, tuple[int, ...]]  # by quantity, and "time" where there is one
    scales: dict[str, tuple[float, ...]]
    joints: tuple[str, ...] = ()  # by name, where the columns are so named
    more: dict[str, tuple[int, ...]] = field(default_factory=dict)
    flat: tuple[str, ...] = ()  # channels of `more` with one number a row


def _tokens(name: str) -> list[str]:
    for letter, word in GREEK.items():
        name = name.replace(letter, word)
    return _TOKEN.findall(name.lower())


def places_of(wanted: Sequence[str], names: Sequence[str]) -> tuple[int, ...] | str:
    """Where each wanted joint stands among the names, or the first one that is not to be found for certain.

    Case and what separates the parts of a name do not matter, nor does one prefix that all the wanted (or all they are
    found as) have in common: `joint1` is found as `panda_joint1`, where `panda_joint2` is there for `joint2`, too.
    """
    if all(names.count(name) == 1 for name in wanted):
        return tuple(names.index(name) for name in wanted)
    ours, theirs = [_tokens(name) for name in wanted], [_tokens(name) for name in names]
    first = ours[0]
    prefixes = {tuple(found[: -len(first)]) for found in theirs if first and found[-len(first) :] == first}
    longer = [[[*prefix, *tokens] for tokens in ours] for prefix in sorted(prefixes)]
    shorter = [[tokens[cut:] for tokens in ours] for cut in range(1, len(first)) if _one_prefix(ours, cut)]
    fits = [option for option in longer + shorter if all(theirs.count(tokens) == 1 for tokens in option)]
    if len(fits) != 1:
        return next((n for n, tokens in zip(wanted, ours, strict=True) if theirs.count(tokens) != 1), wanted[0])
    return tuple(theirs.index(tokens) for tokens in fits[0])


def numbered(names: Sequence[str]) -> bool:
    """Whether names are one word and what counts: A1, A2, A3, or joint_a, joint_b, joint_c."""
    parts = [re.fullmatch(r"(.*\D|)(\d{1,4})|(.*[\W_]|)([a-z])", name.lower()) for name in names]
    words = {(part[1], part[3]) if part else None for part in parts}
    counts = [int(part[2]) if part[2] else ord(part[4]) - ord("a") for part in parts if part]
    return len(words) == 1 and None not in words and counts[0] in (0, 1) and set(np.diff(counts).tolist()) <= {1}


def _one_prefix(names: Sequence[list[str]], cut: int) -> bool:
    """Whether all names begin with the same parts, and go on after them."""
    return all(tokens[:cut] == names[0][:cut] and len(tokens) > cut for tokens in names)


def _without(tokens: list[str], part: list[str]) -> list[str] | None:
    """The tokens without a run of them, None where it is not there."""
    for k in range(len(tokens) - len(part) + 1):
        if part and tokens[k : k + len(part)] == part:
            return tokens[:k] + tokens[k + len(part) :]
    return None


def _quantity(tokens: list[str]) -> str | None:
    said = [token for token in tokens if token not in _NOISE]
    return SPELLINGS.get("".join(said)) or SPELLINGS.get("".join(tokens))


def unit_in(name: str) -> tuple[str, str | None]:
    """A name without the unit in brackets at its end."""
    found = _UNIT.search(name)
    return (name[: found.start()], found[1]) if found else (name, None)


def says_its_unit(name: str) -> bool:
    """Whether the name of a column of times says what it counts."""
    bare, unit = unit_in(name)
    tokens = _tokens(bare)
    return unit is not None or (bool(tokens) and units.spelled(tokens[-1]) in units.TIME) or tokens == ["elapsed"]


def _label(name: str, quantity_first: bool) -> str:
    """What is left of a name without the word for the quantity at its start or end."""
    pattern = r"^[^\W_]+[\W_]+" if quantity_first else r"[\W_]+[^\W_]+$"
    return re.sub(pattern, "", name.strip()).strip(" /._")


def title_of(name: str, joints: Sequence[str] = ()) -> Title | None:
    """What a column's name says, None where it says nothing that is known here."""
    if name == "%time":
        return Title("time", 1e-9, None, None, None)  # rostopic writes nanoseconds
    bare, unit = unit_in(name)
    if unit is None:
        bare, unit = units.rate_at_end(name)
    tokens = _tokens(bare)
    joint, rest = None, tokens
    for candidate in sorted(joints, key=len, reverse=True):
        left = _without(tokens, _tokens(candidate))
        if left and (_quantity(left) or _quantity(left[:-1]) or _quantity(left[:-2])):
            joint, rest = candidate, left
            break
    number, without_number = None, list(rest)
    if joint is None:
        places = [k for k, token in enumerate(rest) if token.isdigit()]
        if places:
            number = int(rest[places[-1]][:9])
            without_number = rest[: places[-1]] + rest[places[-1] + 1 :]
    quantity, label = _quantity(without_number), None
    for tail in (1, 2) if unit is None else ():  # pos_1_deg, torque_1_N_m
        said, ending = _quantity(without_number[:-tail]), "".join(without_number[-tail:])
        # One letter may as well be the joint's: torque_joint_a, beside torque_joint_b
        lettered = len(ending) == 1 and said != "time" and number is None and joint is None
        at_end = rest[-tail:] == without_number[-tail:] and len(rest) > tail
        if quantity is None and at_end and units.factor(said or "", ending) and not lettered:
            quantity, unit = said, ending
    if quantity is None and joint is None and len(rest) > 1:
        ends = (SPELLINGS.get(rest[0]), SPELLINGS.get(rest[-1]))
        if (ends[0] is None) != (ends[1] is None):
            quantity, number, label = ends[0] or ends[1], None, _label(bare, ends[0] is not None)
    if quantity is None:
        return None
    if quantity != "time" and number is None and joint is None and label is None:
        number = 0  # the one joint of a robot that has no more
    scale = 1.0
    if unit is not None and quantity != "current":
        known = units.factor(quantity, unit)
        if known is None or (quantity == "tau" and units.is_current(unit)):
            raise DataError(
                f"column '{name[:60]}': no unit '{unit[:20]}' of {quantity} that is read by name; "
                "say what it is in a mapping"
            )
        scale = known
    return Title(quantity, scale, number, joint, label)


def _channels_of_ours(names: Sequence[str]) -> tuple[dict[str, tuple[int, ...]], tuple[str, ...]]:
    """The columns `more.name[k]` that `save_recording` writes."""
    found: dict[str, list[int]] = {}
    flat = []
    for place, name in enumerate(names):
        match = _MORE.fullmatch(name)
        if match:
            found.setdefault(match[1], []).append(place)
            if match[2] is None:
                flat.append(match[1])
    return {name: tuple(places) for name, places in found.items()}, tuple(flat)


def _keyed(titles: Sequence[Title | None], names: Sequence[str], by: str) -> dict[str, dict[Key, int]]:
    """Quantity → joint → column; a joint is known by its name, its number or the rest of the column's name."""
    found: dict[str, dict[Key, int]] = {}
    for place, title in enumerate(titles):
        if title is None or title.quantity == "time" or (key := getattr(title, by)) is None:
            continue
        taken = found.setdefault(title.quantity, {})
        if key in taken:
            raise DataError(
                f"columns '{names[taken[key]][:60]}' and '{names[place][:60]}' both look like {title.quantity} of "
                f"joint {key}; say in a mapping which one is"
            )
        taken[key] = place
    return found


def _shared_path(names: Sequence[str]) -> int:
    """How much all names have in common up to a point or a stroke: the structure that they are fields of."""
    first, last = min(names, default=""), max(names, default="")  # the farthest apart in the alphabet
    same = next((k for k, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    common = first[:same]
    return max(common.rfind("."), common.rfind("/")) + 1


def by_name(names: Sequence[str], known_joints: Sequence[str] = ()) -> Columns:
    """The columns of a table with a header."""
    more, flat = _channels_of_ours(names)
    ours = {place for places in more.values() for place in places}
    shared = _shared_path(names)
    titles = [None if k in ours else title_of(name[shared:], known_joints) for k, name in enumerate(names)]
    times = [k for k, title in enumerate(titles) if title is not None and title.quantity == "time" and not title.label]
    if len(times) > 1:
        listed = ", ".join(f"'{names[k][:40]}'" for k in times)
        raise DataError(f"columns {listed} all look like the time; say in a mapping which one is")
    keyed: dict[str, dict[Key, int]] = {}
    for by in ("joint", "number", "label"):
        keyed = _keyed(titles, names, by)
        if "q" in keyed and (by != "joint" or set(keyed["q"]) >= set(known_joints)):
            break
    if "q" not in keyed:
        return Columns({"time": (times[0],)} if times else {}, _scales(titles, {"time": tuple(times)}), (), more, flat)
    order = list(keyed["q"])
    if all(isinstance(key, int) for key in order):
        order.sort(key=int)
        _check_numbers(order, "q")
    places = {"time": tuple(times)} if times else {}
    for quantity in (*QUANTITIES, "current"):
        if quantity not in keyed:
            continue
        missing = [key for key in order if key not in keyed[quantity]]
        extra = [key for key in keyed[quantity] if key not in order]
        if (missing or extra) and quantity != "current":
            raise DataError(
                f"{len(keyed[quantity])} columns of {quantity} and {len(order)} of q are not of the same joints: "
                f"joint {(missing or extra)[0]} has only one of them; say in a mapping which columns are which"
            )
        places[quantity] = tuple(keyed[quantity][key] for key in order if key in keyed[quantity])
    joints = tuple(str(key) for key in order) if not isinstance(order[0], int) else ()
    return Columns(places, _scales(titles, places), joints, more, flat)


def _check_numbers(numbers: Sequence[Key], quantity: str) -> None:
    first = int(numbers[0])
    if first not in (0, 1) or list(numbers) != list(range(first, first + len(numbers))):
        listed = ", ".join(f"{quantity}{k}" for k in numbers[:20])
        raise DataError(f"columns {listed} do not number the joints one by one from 0 or 1; is one missing?")


def _scales(titles: Sequence[Title | None], places: dict[str, tuple[int, ...]]) -> dict[str, tuple[float, ...]]:
    return {
        quantity: tuple(title.scale for k in columns if (title := titles[k]) is not None)
        for quantity, columns in places.items()
    }


_READINGS = (("q", "tau"), ("q", "qd", "tau"), ("q", "qd", "qdd", "tau"))


def by_width(width: int, n: int | None, timed: bool) -> Columns:
    """The columns of a table without a header: [time], q, [qd, [qdd]], tau; one reading has to remain."""
    left = width - timed
    fits = [(left // len(r), r) for r in _READINGS if left > 0 and left % len(r) == 0 and n in (None, left // len(r))]
    start = "time, " if timed else ""
    if not fits and n is not None:
        wanted = ", ".join(str(timed + len(r) * n) for r in _READINGS)
        raise DataError(
            f"{width} columns without a header are not {start}q, [qd, [qdd]], tau of {n} joints, which take {wanted}: "
            f"add a header ({start.replace(' ', '')}q0,…,tau0,…) or a mapping"
        )
    if len(fits) != 1:
        readings = "; ".join(f"{start}{', '.join(r)} of {count}" for count, r in fits) or "none fits"
        raise DataError(
            f"{width} columns without a header can be read in {len(fits)} ways "
            f"({readings} joints); "
            "say which robot it is (--model), add a header, or give a mapping"
        )
    count, reading = fits[0]
    places: dict[str, tuple[int, ...]] = {"time": (0,)} if timed else {}
    places |= {q: tuple(range(timed + k * count, timed + (k + 1) * count)) for k, q in enumerate(reading)}
    return Columns(places, {quantity: (1.0,) * len(columns) for quantity, columns in places.items()})
