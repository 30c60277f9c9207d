"""Commands on models: robots, info, check, compare, export."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..dynamics import BaseParameters, base_parameters
from ..errors import ModelError, unknown_name
from ..evaluation.model_check import ModelCheck, check_model
from ..evaluation.model_compare import ModelComparison, compare_models
from ..robot.export import export_model
from ..robot.inertia import mass_com_inertia, principal_inertia
from ..robot.library import library_names, library_path
from ..robot.load import load_robot
from ..robot.reader import joint_names
from ..robot.robot import Robot
from ..robot.sidecar import SUFFIX, read_sidecar
from .options import (
    AsJson,
    Bodies,
    FloatingBase,
    Friction,
    Gravity,
    Lock,
    Model,
    Mounting,
    Seed,
    States,
    locks_in,
    robot_from,
)
from .output import add_row, console, escape, number, print_json, say, table


def robots(as_json: AsJson = False) -> None:
    """List the robots of the library.

    Example: `steelyard robots`
    """
    rows = []
    for name in library_names():
        robot = load_robot(name)
        rows.append(
            {
                "name": name,
                "joints": robot.n,
                "bodies": len(robot.layout.bodies),
                "parameters": robot.layout.size,
                "description": read_sidecar(library_path(name)).description or "",
            }
        )
    if as_json:
        print_json(rows)
        return
    counts = ("joints", "bodies", "parameters")
    listing = table(None, "name", *counts, "description", right=counts)
    for row in rows:
        add_row(listing, *(str(value) for value in row.values()))
    console().print(listing)


def _facts(robot: Robot, base: BaseParameters) -> dict[str, Any]:
    limits = robot.limits
    mass, com, _ = mass_com_inertia(robot.body_parameters)
    moments, _ = principal_inertia(robot.body_parameters)
    joints = {joint.dof + k: joint for joint in robot.joints for k in range(joint.dofs.stop - joint.dof)}
    counts = {"inertial": 10 * len(robot.layout.bodies), **dict.fromkeys(robot.layout.properties, robot.n)}
    return {
        "name": robot.name,
        "degrees_of_freedom": robot.n,
        "positions": robot.nq,
        "gravity": robot.gravity,
        "bodies": [
            {
                "name": name,
                "identified": name in robot.layout.bodies,
                "mass": mass[k],
                "com": com[k],
                "principal_inertia": moments[k],
            }
            for k, name in enumerate(robot.bodies)
        ],
        "joints": [
            {
                "name": robot.dof_names[k],
                "kind": joints[k].kind_name,
                "body": joints[k].body,
                "range": [limits.lower[k], limits.upper[k]],
                "velocity": limits.velocity[k],
                "acceleration": limits.acceleration[k],
                "torque": limits.torque[k],
                "armature": robot.joint_parameters[k, 0],
                "damping": robot.joint_parameters[k, 1],
                "coulomb": robot.joint_parameters[k, 2],
            }
            for k in range(robot.n)
        ],
        "parameters": {**counts, "total": robot.layout.size},
        "base_parameters": {
            "rank": base.rank,
            "clear_gap": base.has_clear_gap,
            "names": base.names,
            "without_effect": [robot.parameter_names[k] for k in base.without_effect],
            "regrouped": [robot.parameter_names[k] for k in base.regrouped],
        },
        "notes": robot.notes,
    }


def _print_facts(facts: dict[str, Any], all_names: bool) -> None:
    out = console()
    g = np.array(facts["gravity"])
    g = np.where(np.abs(g) < 1e-12 * np.abs(g).max(), 0.0, g)  # what turning by a right angle leaves of zero
    n, gravity = facts["degrees_of_freedom"], ", ".join(number(x) for x in g)
    out.print(f"[bold]{escape(facts['name'])}[/bold]  {n} degrees of freedom, gravity ({gravity}) m/s²\n")
    bodies = table(
        "Bodies", "body", "mass kg", "centre of mass m", "principal inertia kg·m²", "identified", right=("mass kg",)
    )
    for body in facts["bodies"]:
        com, moments = (" ".join(number(x) for x in body[key]) for key in ("com", "principal_inertia"))
        add_row(bodies, body["name"], number(body["mass"]), com, moments, "yes" if body["identified"] else "no")
    out.print(bodies)
    keys = ("velocity", "acceleration", "torque", "armature", "damping", "coulomb")
    joints = table("\nJoints (SI units)", "joint", "kind", "moves", "range", *keys, right=keys)
    for joint in facts["joints"]:
        reach = f"{number(joint['range'][0])} … {number(joint['range'][1])}"
        add_row(joints, joint["name"], joint["kind"], joint["body"], reach, *(number(joint[key]) for key in keys))
    out.print(joints)
    counts, base = dict(facts["parameters"]), facts["base_parameters"]
    total = counts.pop("total")
    out.print(f"\n{total} parameters: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count))
    doubt = "" if base["clear_gap"] else " (the rank is in doubt: no clear gap between what counts and what does not)"
    out.print(
        f"{base['rank']} base parameters{doubt}; {len(base['regrouped'])} parameters act only through them, "
        f"{len(base['without_effect'])} have no effect on any torque"
    )
    if all_names:
        for name in base["names"]:
            say(out, f"  {name}")
        if base["without_effect"]:
            say(out, "Without effect: " + ", ".join(base["without_effect"]))
    else:
        out.print("  (`--base` lists them)")
    for note in facts["notes"]:
        say(out, f"note: {note}")


def info(
    model: Model,
    base: bool = typer.Option(False, "--base", help="List the base parameters."),
    lock: Lock = None,
    bodies: Bodies = None,
    friction: Friction = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    floating_base: FloatingBase = False,
    as_json: AsJson = False,
) -> None:
    """Show bodies, joints, limits, parameter counts and base parameters of a model.

    Example: `steelyard info panda --friction coulomb,offset --base`
    """
    robot = robot_from(model, lock, bodies, friction, gravity, mounting, floating_base)
    facts = _facts(robot, base_parameters(robot))
    if as_json:
        print_json(facts)
    else:
        _print_facts(facts, base)


def _print_check(result: ModelCheck) -> None:
    out = console()
    figures = ("largest error", "limit")
    listing = table(f"{result.robot}: {result.states} random states", "", "claim", *figures, right=figures)
    for check in result.checks:
        mark = "[green]ok[/green]" if check.holds else "[red]FAILS[/red]"
        listing.add_row(mark, check.claim, f"{check.error:.1e}", f"{check.limit:.0e}" if check.limit else "0")
    out.print(listing)
    for invalid in result.invalid:
        say(out, f"warning: {invalid}")
    for note in result.notes:
        say(out, f"note: {note}")
    verdict = result.verdict if result.holds else result.verdict.replace("wrong", "[red]wrong[/red]")
    out.print(f"The dynamics of this model are {verdict}.")


def check(
    model: Model,
    lock: Lock = None,
    bodies: Bodies = None,
    friction: Friction = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    floating_base: FloatingBase = False,
    states: States = 200,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare our dynamics of a model with MuJoCo's and with the laws of mechanics, at random states.

    Example: `steelyard check panda`
    """
    robot = robot_from(model, lock, bodies, friction, gravity, mounting, floating_base)
    result = check_model(robot, np.random.default_rng(seed), states)
    if as_json:
        print_json(
            {
                "robot": result.robot,
                "states": result.states,
                "holds": result.holds,
                "verdict": result.verdict,
                "mended": result.mended,
                "checks": [
                    {"claim": c.claim, "error": c.error, "limit": c.limit, "holds": c.holds} for c in result.checks
                ],
                "invalid": [str(invalid) for invalid in result.invalid],
                "notes": result.notes,
            }
        )
    else:
        _print_check(result)
    if not result.holds:
        raise typer.Exit(1)


def _print_comparison(result: ModelComparison) -> None:
    out = console()
    unit = " or ".join(dict.fromkeys(joint.unit for joint in result.joints))
    columns = ("axis °", "axis mm", f"gravity {unit}", f"torque {unit}", f"largest torque {unit}")
    listing = table(
        f"Largest differences between {result.names[0]} and {result.names[1]}", "joint", *columns, right=columns
    )
    for joint in result.joints:
        name = joint.names[0] if joint.names[0] == joint.names[1] else " / ".join(joint.names)
        add_row(
            listing,
            name,
            f"{np.degrees(joint.axis_angle):.2g}",
            f"{joint.axis_distance * 1e3:.2g}",
            f"{joint.gravity:.2g}",
            f"{joint.torque:.2g}",
            f"{joint.torque_scale:.3g}",
        )
    out.print(listing)
    out.print(f"mass matrix: {result.mass_matrix:.2g} of its largest element")
    out.print(f"moving mass: {result.total_mass[0]:.4g} kg and {result.total_mass[1]:.4g} kg")
    say(out, result.verdict)


def _held_where_they_are(models: list[str], lock: list[str] | None) -> list[Robot]:
    """The models, each with those of the joints held that it has."""
    robots, locks = [load_robot(model) for model in models], locks_in(lock)
    if locks is None:
        return robots
    joints = [joint_names(robot.source.model) if robot.source else [] for robot in robots]
    for name in locks:
        if not any(name in names for names in joints):
            raise ModelError(unknown_name("joint to lock", name, dict.fromkeys(joints[0] + joints[1])))
    held = [{name: value for name, value in locks.items() if name in names} for names in joints]
    return [load_robot(model, lock=its or None) for model, its in zip(models, held, strict=True)]


def compare(
    model_a: Model,
    model_b: Model,
    lock: Lock = None,
    states: States = 200,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare two models joint by joint: axes, mass matrix, gravity, torque, and where they part.

    Joints in `--lock` are held in each model that has them.

    Example: `steelyard compare ur10 ur5e`
    """
    a, b = _held_where_they_are([model_a, model_b], lock)
    result = compare_models(a, b, np.random.default_rng(seed), states)
    if not as_json:
        _print_comparison(result)
        return
    print_json(
        {
            "models": result.names,
            "same": result.same,
            "verdict": result.verdict,
            "mass_matrix": result.mass_matrix,
            "total_mass": result.total_mass,
            "joints": [
                {
                    "names": joint.names,
                    "axis_angle": joint.axis_angle,
                    "axis_distance": joint.axis_distance,
                    "gravity": joint.gravity,
                    "torque": joint.torque,
                    "torque_scale": joint.torque_scale,
                    "unit": joint.unit,
                }
                for joint in result.joints
            ],
        }
    )


def export(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to: .xml and .mjcf are MJCF, .urdf is URDF.")],
    lock: Lock = None,
    bodies: Bodies = None,
    friction: Friction = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    floating_base: FloatingBase = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that exists.")] = True,
    as_json: AsJson = False,
) -> None:
    """Write a model as MJCF or URDF, by the suffix, with a sidecar of limits and locks where it needs one.

    Example: `steelyard export my_table.yaml --output arm.xml`
    """
    robot = robot_from(model, lock, bodies, friction, gravity, mounting, floating_base)
    notes = export_model(robot, output, overwrite=overwrite)
    sidecar = output.with_name(output.stem + SUFFIX)
    written = [output, *([sidecar] if any(note.startswith(sidecar.name) for note in notes) else [])]
    if as_json:
        print_json({"robot": robot.name, "written": [str(path) for path in written], "notes": notes})
        return
    for path in written:
        say(console(), f"wrote {path}")
    for note in notes:
        say(console(), f"note: {note}")


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (robots, info, check, compare, export):
        app.command()(command)
