"""What a model has and the regressor does not: named when a model is loaded, never dropped in silence."""

import mujoco
import numpy as np

from .reader import body_names, joint_names, name_of

UNMODELLED = "not modelled"  # in every sentence on a torque that acts and is left out


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _joints(model: mujoco.MjModel, held: np.ndarray) -> list[str]:
    names = joint_names(model)
    notes = []

    def of_dofs(values: np.ndarray) -> list[str]:
        hit = np.flatnonzero(np.abs(values).reshape(model.nv, -1).sum(axis=1))
        return sorted({names[model.dof_jntid[k]] for k in hit if k not in held}, key=names.index)

    springs = [names[j] for j in range(model.njnt) if model.jnt_stiffness[j] or np.any(model.jnt_stiffnesspoly[j])]
    if springs:
        notes.append(f"joint springs (stiffness) on {_listed(springs)}: their torque is not modelled")
    if curved := of_dofs(model.dof_dampingpoly):
        notes.append(f"nonlinear damping (dof_dampingpoly) on {_listed(curved)}: only the linear part is modelled")
    plastic = [names[j] for j in range(model.njnt) if model.jnt_plasticadr[j] >= 0]
    if plastic:
        notes.append(f"plastic springs on {_listed(plastic)}: not modelled")
    return notes


def _actuators(model: mujoco.MjModel) -> list[str]:
    notes = []
    damping = np.column_stack([model.actuator_damping, model.actuator_dampingpoly])
    for values, word in ((model.actuator_armature, "armature"), (damping, "damping")):
        hit = np.flatnonzero(np.abs(values).reshape(max(model.nactuator, 1), -1).sum(axis=1))
        if hit.size:
            owners = [name_of(model, mujoco.mjtObj.mjOBJ_ACTUATOR, int(k), "actuator") for k in hit]
            notes.append(
                f"{word} of the actuators {_listed(owners)}: not modelled; it adds to the joints' own {word}, "
                "so identified values contain it"
            )
    return notes


def _couplings(model: mujoco.MjModel) -> list[str]:
    notes = []
    if model.ntendon:
        tendons = [name_of(model, mujoco.mjtObj.mjOBJ_TENDON, k, "tendon") for k in range(model.ntendon)]
        notes.append(f"tendons {_listed(tendons)}: their forces, friction and armature are not modelled")
    if model.neq:
        equalities = [name_of(model, mujoco.mjtObj.mjOBJ_EQUALITY, k, "equality") for k in range(model.neq)]
        notes.append(f"equality constraints {_listed(equalities)}: not modelled")
    if model.nflex:
        notes.append(f"{model.nflex} flexible bodies (flex): not modelled")
    if model.nplugin:
        notes.append(f"{model.nplugin} plugins: not modelled")
    return notes


def _surroundings(model: mujoco.MjModel) -> list[str]:
    notes = []
    names = body_names(model)
    if model.ngravcomp:
        weightless = [names[b] for b in np.flatnonzero(model.body_gravcomp)]
        notes.append(f"gravity compensation (gravcomp) of {_listed(weightless)}: not modelled")
    if model.opt.density or model.opt.viscosity:
        notes.append(
            f"a fluid (density {model.opt.density:g}, viscosity {model.opt.viscosity:g}): its drag is not modelled"
        )
    if model.nmocap:
        notes.append("mocap bodies: taken as fixed where the model draws them")
    return notes


def uncarried(model: mujoco.MjModel, held_dofs: np.ndarray, properties: tuple[str, ...]) -> tuple[str, ...]:
    """One sentence for each kind of physics in the model that tau = Y theta leaves out."""
    notes = _joints(model, held_dofs) + _actuators(model) + _couplings(model) + _surroundings(model)
    if "coulomb" not in properties:
        names = joint_names(model)
        rubbing = [k for k in np.flatnonzero(model.dof_frictionloss) if k not in held_dofs]
        if rubbing:
            on = _listed(list(dict.fromkeys(names[model.dof_jntid[k]] for k in rubbing)))
            notes.append(
                f"dry friction (frictionloss) on {on}: acts as known at the model's value; "
                "identify it with friction 'coulomb'"
            )
    return tuple(notes)
