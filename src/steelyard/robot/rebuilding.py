"""From a compiled model back to a spec: what the tree and its dynamics need, as numbers; the rest is named."""

import mujoco
import numpy as np

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL
_SHAPES = {
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("PLANE", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
}
_NOT_CARRIED = (
    ("tendon", "tendons", "ntendon", mujoco.mjtObj.mjOBJ_TENDON),
    ("equality constraint", "equality constraints", "neq", mujoco.mjtObj.mjOBJ_EQUALITY),
    ("actuator", "actuators", "nactuator", mujoco.mjtObj.mjOBJ_ACTUATOR),
    ("mesh", "meshes", "nmesh", mujoco.mjtObj.mjOBJ_MESH),
    ("flex", "flexes", "nflex", mujoco.mjtObj.mjOBJ_FLEX),
    ("plugin", "plugins", "nplugin", mujoco.mjtObj.mjOBJ_PLUGIN),
)


def _name(model: mujoco.MjModel, kind: mujoco.mjtObj, index: int) -> str:
    return mujoco.mj_id2name(model, kind, index) or ""


def _limited(flag: int) -> mujoco.mjtLimited:
    return mujoco.mjtLimited.mjLIMITED_TRUE if flag else mujoco.mjtLimited.mjLIMITED_FALSE


def _add_joint(model: mujoco.MjModel, j: int, body: mujoco.MjsBody, notes: list[str]) -> None:
    kind, name = int(model.jnt_type[j]), _name(model, mujoco.mjtObj.mjOBJ_JOINT, j)
    dof, q = int(model.jnt_dofadr[j]), int(model.jnt_qposadr[j])
    width = {int(_FREE): 6, int(_BALL): 3}.get(kind, 1)
    per_dof = ("armature", "damping", "frictionloss")
    uneven = [field for field in per_dof if np.ptp(getattr(model, f"dof_{field}")[dof : dof + width]) > 0]
    if uneven:
        which = f"'{name}'" if name else f"number {j}"
        notes.append(f"joint {which}: {', '.join(uneven)} differs between its axes; that of the first is kept for all")
    joint = body.add_joint(
        name=name,
        type=mujoco.mjtJoint(kind),
        pos=model.jnt_pos[j],
        axis=model.jnt_axis[j],
        align=mujoco.mjtAlignFree.mjALIGNFREE_FALSE,
        stiffness=[model.jnt_stiffness[j], *model.jnt_stiffnesspoly[j]],
        springyield=model.jnt_springyield[j],
        limited=_limited(model.jnt_limited[j]),
        range=model.jnt_range[j],
        margin=model.jnt_margin[j],
        solref_limit=model.jnt_solref[j],
        solimp_limit=model.jnt_solimp[j],
        actfrclimited=_limited(model.jnt_actfrclimited[j]),
        actfrcrange=model.jnt_actfrcrange[j],
        actgravcomp=bool(model.jnt_actgravcomp[j]),
        armature=model.dof_armature[dof],
        damping=[model.dof_damping[dof], *model.dof_dampingpoly[dof]],
        frictionloss=model.dof_frictionloss[dof],
        solref_friction=model.dof_solref[dof],
        solimp_friction=model.dof_solimp[dof],
        group=model.jnt_group[j],
    )
    if width == 1:
        joint.ref, joint.springref = model.qpos0[q], model.qpos_spring[q]


def _add_geom(model: mujoco.MjModel, g: int, body: mujoco.MjsBody) -> None:
    geom = body.add_geom(
        name=_name(model, mujoco.mjtObj.mjOBJ_GEOM, g),
        type=mujoco.mjtGeom(int(model.geom_type[g])),
        pos=model.geom_pos[g],
        quat=model.geom_quat[g],
        size=model.geom_size[g],
        mass=0.0,  # the body's inertial is given
    )
    for field in ("contype", "conaffinity", "condim", "priority", "solmix", "group", "margin", "gap"):
        setattr(geom, field, getattr(model, f"geom_{field}")[g].item())
    for field in ("friction", "solref", "solimp", "rgba"):
        setattr(geom, field, getattr(model, f"geom_{field}")[g])
    # geom_fluid: interaction flag, five coefficients, then what the compiler makes of the shape
    if model.geom_fluid[g, 0]:
        geom.fluid_ellipsoid, geom.fluid_coefs = 1.0, model.geom_fluid[g, 1:6]


def _add_body(model: mujoco.MjModel, b: int, parent: mujoco.MjsBody) -> mujoco.MjsBody:
    return parent.add_body(
        name=_name(model, mujoco.mjtObj.mjOBJ_BODY, b),
        pos=model.body_pos[b],
        quat=model.body_quat[b],
        mass=model.body_mass[b],
        ipos=model.body_ipos[b],
        iquat=model.body_iquat[b],
        inertia=model.body_inertia[b],
        explicitinertial=True,
        gravcomp=model.body_gravcomp[b],
        mocap=bool(model.body_mocapid[b] >= 0),
    )


def _not_carried(model: mujoco.MjModel) -> list[str]:
    notes = []
    for one, many, count, kind in _NOT_CARRIED:
        n = int(getattr(model, count))
        if n:
            names = [f"'{_name(model, kind, k)}'" for k in range(n) if _name(model, kind, k)]
            listed = f" ({', '.join(names[:6])}{', …' if len(names) > 6 else ''})" if names else ""
            notes.append(f"{n} {one if n == 1 else many}{listed} of the compiled model not carried over; give the file")
    return notes


def rebuild_spec(model: mujoco.MjModel, notes: list[str]) -> mujoco.MjSpec:
    """A spec that compiles to the same tree with the same dynamics."""
    spec = mujoco.MjSpec()
    spec.modelname = model.names.split(b"\0", 1)[0].decode("utf-8", "replace")
    spec.compiler.degree = False
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    for field in (name for name in dir(model.opt) if not name.startswith("_")):
        value = getattr(model.opt, field)
        setattr(spec.option, field, value.copy() if isinstance(value, np.ndarray) else value)

    bodies = [spec.worldbody]
    for b in range(1, model.nbody):
        bodies.append(_add_body(model, b, bodies[model.body_parentid[b]]))
    for j in range(model.njnt):
        _add_joint(model, j, bodies[model.jnt_bodyid[j]], notes)
    shaped = [g for g in range(model.ngeom) if int(model.geom_type[g]) in _SHAPES]
    for g in shaped:
        _add_geom(model, g, bodies[model.geom_bodyid[g]])
    if len(shaped) < model.ngeom:
        count = model.ngeom - len(shaped)
        which = "geom that is not a simple shape" if count == 1 else "geoms that are not simple shapes"
        notes.append(f"{count} {which} left out of the compiled model")
    for s in range(model.nsite):
        bodies[model.site_bodyid[s]].add_site(
            name=_name(model, mujoco.mjtObj.mjOBJ_SITE, s), pos=model.site_pos[s], quat=model.site_quat[s]
        )
    for signature in model.exclude_signature:
        first, second = (bodies[i].name for i in (int(signature) >> 16, int(signature) & 0xFFFF))
        if first and second:
            spec.add_exclude(bodyname1=first, bodyname2=second)
    for k in range(model.nkey):
        spec.add_key(name=_name(model, mujoco.mjtObj.mjOBJ_KEY, k), time=model.key_time[k], qpos=model.key_qpos[k])
    notes += _not_carried(model)
    return spec
