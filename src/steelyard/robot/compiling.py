"""MuJoCo's parser and compiler behind our own errors: one sentence, nothing printed, no log file left behind."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import mujoco
import numpy as np

from ..errors import ModelError
from .inertials import refuse_negative

MAX_BODIES = 1000  # a chain of so many takes MuJoCo 1.5 s, one of 5,000 more than a minute
LONGEST = 300  # characters of MuJoCo's own words in one of our sentences

# What MuJoCo says (as a pattern), what we say; {it} is the element it names
_IN_OUR_WORDS = (
    (
        "mass and inertia of moving bodies",
        "{it} moves, but neither it nor anything welded to it has a mass and an inertia; "
        "give it an inertial, or fix it to its parent",
    ),
    (
        r"inertia must satisfy A \+ B >= C",
        "the inertia of {it} is that of no rigid body (principal moments with A + B < C); "
        'correct it, or set balanceinertia="true" in <compiler>',
    ),
    (
        "inertia must have positive eigenvalues",
        "the inertia of {it} has a principal moment that is not positive; correct it",
    ),
    (
        "free joint can only be used on top level",
        "{it} has a free joint but is not a child of the world; only a root body can float",
    ),
)
_ELEMENT = re.compile(r"Element name '(?P<name>[^']*)', id (?P<id>-?\d+)(?:, line (?P<line>\d+))?")
_TAG = re.compile(r"Element '(?P<tag>[^']*)'(?:, line (?P<line>\d+))?")


def _sentence(where: str, message: str, lines: bool) -> str:
    """The essence of one of MuJoCo's messages."""
    element, tag = _ELEMENT.search(message), _TAG.search(message)
    found = element or tag
    line = found["line"] if found and lines else None
    at = f"{where}, line {line}" if line and int(line) > 0 else where
    for pattern, ours in _IN_OUR_WORDS:
        if element and re.search(pattern, message):
            it = f"'{element['name']}'" if element["name"] else f"the unnamed body number {element['id']}"
            return f"{at}: {ours.format(it=it)}"
    what = _TAG.sub("", _ELEMENT.sub("", message))
    what = re.sub(r"^(\s*(XML )?Error:)+|ErrorID=\d+ \(\w+\)", "", what)
    what = " ".join(what.split()).rstrip(" .,:")[:LONGEST]
    if element and (element["name"] or int(element["id"]) >= 0):
        what += f" ('{element['name']}')" if element["name"] else f" (element number {element['id']})"
    elif tag:
        what += f" (<{tag['tag']}>)"
    return f"{at}: {what}"


@contextmanager
def mujoco_speaks(where: str, notes: list[str], lines: bool = True) -> Iterator[None]:
    """Turn what MuJoCo raises into a `ModelError` and what it warns of into notes."""

    def heard(warning: str) -> None:
        note = f"MuJoCo warns: {' '.join(warning.split())[:LONGEST]}"
        if note not in notes and "mjp_findDecoder" not in note:  # the latter: a remark on its own inner workings
            notes.append(note)

    # Without a handler, MuJoCo prints its warnings and writes MUJOCO_LOG.TXT into the working folder
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            heard(str(warning.message))
    except ModelError:
        raise
    except MemoryError:
        raise ModelError(f"{where}: asks for more memory than there is") from None
    except Exception as error:  # the bindings raise ValueError, RuntimeError and classes of their own
        raise ModelError(_sentence(where, str(error), lines)) from None
    finally:
        mujoco.set_mju_user_warning(before)


def compile_spec(
    spec: mujoco.MjSpec,
    where: str,
    notes: list[str],
    mend: Callable[[str], bool] = lambda message: False,
    lines: bool = True,
) -> mujoco.MjModel:
    """The compiled model, without touching the spec; `mend` may change the spec after a failure to have another try."""
    with mujoco_speaks(where, notes, lines):
        count = len(spec.bodies)
        if count > MAX_BODIES:
            raise ModelError(f"{where}: {count} bodies, more than the {MAX_BODIES} allowed; is this one robot?")
        while True:
            try:
                return spec.copy().compile()
            except ValueError as error:
                if re.search(_IN_OUR_WORDS[0][0], str(error)):
                    for body in spec.bodies[1:]:
                        refuse_negative(body, where)
                if not mend(str(error)):
                    raise


def name_of(model: mujoco.MjModel, kind: mujoco.mjtObj, index: int, word: str) -> str:
    """An element's name in quotes, or its number."""
    name = mujoco.mj_id2name(model, kind, index)
    return f"'{name}'" if name else f"{word} number {index}"


def refuse_not_finite(model: mujoco.MjModel, where: str) -> None:
    """A number that is not finite would make every result nan."""
    rows = (
        ("body", mujoco.mjtObj.mjOBJ_BODY, "body_pos body_quat body_mass body_ipos body_iquat body_inertia"),
        ("joint", mujoco.mjtObj.mjOBJ_JOINT, "jnt_pos jnt_axis jnt_stiffness jnt_stiffnesspoly"),
        ("dof", mujoco.mjtObj.mjOBJ_UNKNOWN, "dof_armature dof_damping dof_dampingpoly dof_frictionloss"),
    )
    for word, kind, fields in rows:
        for field in fields.split():
            values = getattr(model, field)
            bad = np.argwhere(~np.isfinite(values))
            if bad.size:
                index = int(bad[0, 0])
                if word == "dof":
                    index, kind = int(model.dof_jntid[index]), mujoco.mjtObj.mjOBJ_JOINT
                it, what = name_of(model, kind, index, word), field.split("_")[1]
                raise ModelError(f"{where}: {it}: its {what} is not finite; correct it")
    if not (np.isfinite(model.opt.gravity).all() and np.isfinite(model.qpos0).all()):
        raise ModelError(f"{where}: gravity or a joint's reference position is not finite")


def refuse_loops(model: mujoco.MjModel, where: str) -> None:
    """Active connect and weld constraints close loops, which a tree of joints cannot express."""
    kinds = {int(mujoco.mjtEq.mjEQ_CONNECT): "connect", int(mujoco.mjtEq.mjEQ_WELD): "weld"}
    for k in np.flatnonzero(model.eq_active0):
        kind = kinds.get(int(model.eq_type[k]))
        if kind is None:
            continue
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_EQUALITY, k)
        objtype = mujoco.mjtObj(int(model.eq_objtype[k]))
        ends = [name_of(model, objtype, int(i[k]), "body") for i in (model.eq_obj1id, model.eq_obj2id)]
        called = f" '{name}'" if name else ""
        raise ModelError(
            f"{where}: the {kind} constraint{called} between {ends[0]} and {ends[1]} closes a loop, and only trees can "
            'be identified; remove it, or open it with active="false"'
        )


def float_the_base(spec: mujoco.MjSpec, where: str) -> list[str]:
    """Give the one root body a free joint, unless a root body floats already."""
    roots = list(spec.worldbody.bodies)
    free = mujoco.mjtJoint.mjJNT_FREE
    if len(roots) == 1 and any(joint.type == free for joint in roots[0].joints):
        why = f"root body '{roots[0].name}' floats already"
        return [f"a floating base was asked for, and nothing changes: {why}"]
    names = ", ".join(f"'{root.name}'" for root in roots[:6]) + (", …" if len(roots) > 6 else "")
    if len(roots) != 1:
        raise ModelError(f"{where}: a floating base needs exactly one root body, and there are {len(roots)}: {names}")
    if roots[0].joints:
        raise ModelError(
            f"{where}: the base cannot float: root body {names} hangs on joint '{roots[0].joints[0].name}'"
        )
    name, taken = "floating_base", {joint.name for joint in spec.joints}
    while name in taken:
        name += "_"
    roots[0].add_freejoint(name=name, align=mujoco.mjtAlignFree.mjALIGNFREE_FALSE)
    keys = list(spec.keys)
    for key in keys:  # of a length that no longer fits
        spec.delete(key)
    gone = f", {len(keys)} keyframes of the fixed base left out" if keys else ""
    return [f"root body {names} floats: free joint '{name}' added{gone}"]
