"""Random trees of every kind of joint, and MuJoCo's own dynamics of them."""

import numpy as np

KINDS = ("hinge", "slide", "ball", "none", "two hinges")


def _numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def _direction(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def _inertial(rng: np.random.Generator) -> str:
    points = rng.normal(size=(12, 3)) * 0.1
    weights = rng.uniform(0.05, 0.5, size=12)
    com = weights @ points / weights.sum()
    d = points - com
    spread = np.einsum("k,ij->kij", (d**2).sum(1), np.eye(3)) - d[:, :, None] * d[:, None]
    inertia = np.einsum("k,kij->ij", weights, spread)
    full = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    return f'<inertial pos="{_numbers(com)}" mass="{float(weights.sum())!r}" fullinertia="{_numbers(full)}"/>'


def _joint(rng: np.random.Generator, kind: str, name: str, plain: bool) -> str:
    pos = np.zeros(3) if plain or rng.random() < 0.5 else rng.normal(size=3) * 0.1
    physics = f'armature="{rng.uniform(0, 0.2)!r}" damping="{rng.uniform(0, 2)!r}"'
    if kind == "ball":
        return f'<joint name="{name}" type="ball" pos="{_numbers(pos)}" {physics}/>'
    ref = "" if plain else f'ref="{float(rng.normal() * 0.3)!r}"'
    return (
        f'<joint name="{name}" type="{kind}" axis="{_numbers(_direction(rng))}" pos="{_numbers(pos)}" {ref} {physics} '
        f'frictionloss="{rng.uniform(0, 1)!r}"/>'
    )


def random_mjcf(
    rng: np.random.Generator, bodies: int = 6, kinds: tuple[str, ...] = KINDS, free: bool | None = None
) -> str:
    """A random tree: branching, welded bodies, several joints a body, joints off the origin, tilted gravity."""
    plain = "plain" in kinds
    kinds = tuple(k for k in kinds if k != "plain")
    children: dict[int, list[int]] = {k: [] for k in range(bodies + 1)}
    for k in range(1, bodies + 1):
        children[int(rng.integers(max(0, k - 3), k))].append(k)
    floating = bool(rng.random() < 0.3) if free is None else free

    def body(k: int, top: bool) -> str:
        pose = f'pos="{_numbers(rng.normal(size=3) * 0.3)}" quat="{_numbers(_direction4(rng))}"'
        kind = str(rng.choice(kinds)) if k > 1 else "hinge"
        if top and floating:
            joints = f'<freejoint name="j{k}"/>'
        elif kind == "none":
            joints = ""
        elif kind == "two hinges":
            joints = _joint(rng, "hinge", f"j{k}", plain) + _joint(rng, "hinge", f"j{k}b", plain)
        else:
            joints = _joint(rng, kind, f"j{k}", plain)
        inner = "".join(body(child, False) for child in children[k])
        return f'<body name="b{k}" {pose}>{joints}{_inertial(rng)}{inner}</body>'

    tops = "".join(body(k, True) for k in children[0])
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{_numbers(rng.normal(size=3) * 6)}"/>'
        f"<worldbody>{tops}</worldbody></mujoco>"
    )


def _direction4(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=4)
    return v / np.linalg.norm(v)
