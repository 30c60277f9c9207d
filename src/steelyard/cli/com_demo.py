"""`steelyard com --demo`: the balancing robot, with and without a load, and every method on it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from ..balance.balancing import Load
from ..balance.comparison import STACKED, Comparison, compare, default_targets
from ..balance.demonstration import StandingSensors
from ..balance.stacked import Stacked
from ..balance.stance import Stance
from ..balance.table import as_csv
from ..errors import ModelError, OptionError
from ..report.balance import comparison_picture
from ..report.page import write_text
from .output import add_row, console, print_json, say, table

# Of the simulated drive where the coupling is to be estimated: the shin feels the sum of both motors.
_COUPLED = 1.0


def _facts(comparison: Comparison) -> dict[str, Any]:
    found, shown = comparison.estimate, comparison.demonstration
    coupling = {} if found.coupling is None else {"coupling": found.coupling, "true_coupling": _COUPLED}
    return {
        "robot": comparison.title,
        "true_mass": shown.mass,
        "true_com": shown.com,
        "mass": found.mass,
        "com": found.com,
        "error_in_the_sagittal_plane": comparison.final_error,
        "deviation": found.deviation,
        **coupling,
        "interval_95": {name: found.interval(name) for name in found.deviation},
        "least_norm_right_at_deg": float(np.degrees(comparison.right_at)),
        "pitch_deg": np.degrees(comparison.pitch),
        "errors": comparison.errors,
    }


def _print(comparison: Comparison) -> None:
    out, columns = console(), tuple(comparison.errors)
    listing = table(
        f"The robot {comparison.title}: error in the sagittal plane, mm",
        "pitch °",
        *columns,
        right=("pitch °", *columns),
    )
    for k in np.argsort(comparison.pitch):
        cells = [f"{1e3 * errors[k]:.2f}" if np.isfinite(errors[k]) else "–" for errors in comparison.errors.values()]
        add_row(listing, f"{np.degrees(comparison.pitch[k]):.1f}", *cells)
    out.print(listing)
    found, shown = comparison.estimate, comparison.demonstration
    for label, value, truth, key, scale, unit in (
        ("mass", found.mass, shown.mass, "mass", 1.0, "kg"),
        *((axis, found.com[k], shown.com[k], axis, 1e3, "mm") for k, axis in enumerate("xyz")),
    ):
        low, high = (scale * end for end in found.interval(key))
        say(out, f"  {label}: {scale * value:.2f} ({low:.2f} … {high:.2f}) {unit}, truly {scale * truth:.2f}")
    if found.coupling is not None:
        low, high = found.interval("coupling")
        say(out, f"  coupling of knee to hip: {found.coupling:.3f} ({low:.3f} … {high:.3f}), truly {_COUPLED:g}")
    say(out, f"  all poses stacked: {1e3 * comparison.final_error:.2f} mm off; {found.message}")
    right = np.degrees(comparison.right_at)
    say(out, f"  one pose alone is right where the centre of mass is level with the trunk's origin: at {right:.0f}°\n")


def demonstration(
    stance: Stance,
    settings: Stacked,
    load: float,
    place: NDArray[np.float64],
    seed: int,
    figure: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Simulate, compare, print; and write picture and recording where asked."""
    for path, suffix in ((figure, ".svg"), (output, ".csv")):
        if path is not None and path.suffix.lower() != suffix:
            raise OptionError(f"{path}: it is written as {suffix}")
        if path is not None and not path.parent.is_dir():
            raise OptionError(f"{path}: no folder {path.parent}; make it first")
    targets = default_targets(stance)
    if len(targets) < 2:
        raise ModelError(f"{stance.robot.name} can stand in {len(targets)} of the demonstration's poses; it needs two")
    burden = Load(load, (float(place[0]), float(place[1]), float(place[2])))
    rng = np.random.default_rng(seed)
    sensors = StandingSensors(accuracy=settings.accuracy)
    ratio = _COUPLED if settings.coupling.ratio is None else settings.coupling.ratio
    err = Console(stderr=True)
    with Progress(console=err, disable=bool(os.environ.get("STEELYARD_QUIET")) or not err.is_terminal) as progress:
        task = progress.add_task("balancing", total=2 * len(targets))

        def advance(_done: int, _all: int) -> None:
            progress.advance(task)

        made = [compare(stance, targets, rng, of, settings, sensors, ratio, advance) for of in (None, burden)]
    if figure is not None:
        write_text(figure, comparison_picture(made))
    if output is not None:
        write_text(output, as_csv(made[1].demonstration.recording))
    written = [str(path) for path in (figure, output) if path is not None]
    if as_json:
        print_json(
            {
                "model": stance.robot.name,
                "seed": seed,
                "stacked": STACKED,
                "runs": [_facts(one) for one in made],
                "written": written,
            }
        )
        return
    for one in made:
        _print(one)
    for name in written:
        say(console(), f"wrote {name}")
