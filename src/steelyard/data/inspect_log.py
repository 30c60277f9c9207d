"""What a log shows without a model: its clock, and channels that are missing, frozen, saturated or still."""

import numpy as np

from ..robot.robot import Robot
from .differentiate import velocity_agreement
from .findings import Finding, listed, runs, where
from .recording import Recording
from .resample import ABSURD, Resample
from .rows import standstill_speeds
from .spectrum import MIN_ROWS
from .steps import Array, Mask, is_even

# Steps that differ by more than this share of the usual one are jitter; a gap is that many steps.
JITTER = 0.05
GAP_STEPS = 3.0
GAP_SECONDS = 0.02
# Rows that repeat the one before, as a share, that are worth a word.
REPEATED = 0.01
# No hinge of an arm has positions (rad), velocities (rad/s) or torques (N·m) beyond these.
BEYOND = {"q": 1e3, "qd": 200.0, "qdd": 1e5, "tau": 1e5}
# A channel that holds its largest value in runs of so many rows, for such a share of the time, is saturated.
HELD_ROWS, HELD_SHARE = 5, 0.005
# Standstill is worth a word from such a length on, s.
STILL_SECONDS = 0.3
# Speed is the way over this time, s, so that steps of encoders do not count as motion.
SPEED_SECONDS = 0.05


def clock(recording: Recording) -> list[Finding]:
    """Rate, jitter, gaps, repeated rows."""
    step = np.diff(recording.t)
    if not len(step):
        return []
    usual = float(np.median(step))
    found = []
    gap = max(GAP_STEPS * usual, GAP_SECONDS)
    gaps = np.flatnonzero(step > gap)
    inside = step[step <= gap]
    if len(inside) and not is_even(recording.t) and np.ptp(inside) > JITTER * usual:
        found.append(
            Finding(
                "warning",
                "jitter",
                f"stamps jitter: steps from {1e3 * inside.min():.3g} to {1e3 * inside.max():.3g} ms, "
                f"usually {1e3 * usual:.4g} ms",
                "preprocessing puts all channels on an even grid",
                number=float(np.ptp(inside)),
            )
        )
    for k in gaps[:5]:
        place = where(recording, (int(k), int(k) + 1))
        text = f"no rows for {step[k]:.3g} s, {step[k] / usual:.0f} steps" + (
            f"; {len(gaps)} such gaps" if len(gaps) > 1 else ""
        )
        found.append(Finding("warning", "gap", text, "its rows are not used", number=float(step[k]), **place))
    held = np.ones(len(step), dtype=bool)
    for x in (recording.q, recording.tau):
        held &= (x[1:] == x[:-1]).all(axis=1)
    moved = (recording.q[1:] != recording.q[:-1]).any(axis=1)
    # A repeated row between rows that move, not a robot that stands still.
    held &= np.concatenate([[False], moved[:-1]]) & np.concatenate([moved[1:], [False]])
    if held.mean() > REPEATED:
        found.append(
            Finding(
                "note",
                "repeated",
                f"{100 * held.mean():.2g} % of rows repeat the row before them: the logger is faster than the robot",
                "log at the robot's own rate, with the robot's own stamps",
                number=float(held.mean()),
            )
        )
    return found


def told_by_reader(recording: Recording) -> list[Finding]:
    """What whoever read the file has already said of it."""
    found = [Finding("warning", "repair", str(text)) for text in recording.about.get("repairs") or ()]
    return found + [Finding("note", "reader", str(text)) for text in recording.about.get("notes") or ()]


def values(recording: Recording) -> list[Finding]:
    """Numbers that are none, or that no joint has."""
    found = []
    for name, most in BEYOND.items():
        x = getattr(recording, name)
        if x is None:
            continue
        for j, joint in enumerate(recording.joints):
            missing = np.flatnonzero(~np.isfinite(x[:, j]))
            if missing.size:
                text = f"{name} is no finite number in {missing.size} rows: {listed(missing)}"
                rows = (int(missing[0]), int(missing[-1]))
                found.append(
                    Finding(
                        "error" if missing.size > 0.5 * len(x) else "warning",
                        "missing",
                        text,
                        "their rows are mended and not used",
                        joint,
                        number=float(missing.size),
                        **where(recording, rows),
                    )
                )
            with np.errstate(invalid="ignore"):
                absurd = np.flatnonzero((np.abs(x[:, j]) > most) & np.isfinite(x[:, j]))
            if absurd.size:
                largest = float(np.abs(x[absurd, j]).max())
                found.append(
                    Finding(
                        "error" if absurd.size > 0.01 * len(x) else "warning",
                        "absurd",
                        f"{name} reaches {largest:.3g} in {absurd.size} rows: {listed(absurd)}",
                        "check units and columns" + ("" if largest < ABSURD else "; such rows are not used"),
                        joint,
                        number=largest,
                        **where(recording, (int(absurd[0]), int(absurd[-1]))),
                    )
                )
    return found


def held_channels(recording: Recording) -> list[Finding]:
    """Joints that never move, torques that are frozen, channels at their stops."""
    found = []
    for j, joint in enumerate(recording.joints):
        q, tau = recording.q[:, j], recording.tau[:, j]
        still = np.ptp(q) < 1e-9
        if still:
            text, remedy = "never moves", "what only its motion shows cannot be identified"
            found.append(Finding("warning", "frozen", text, remedy, joint))
        if np.ptp(tau) == 0.0:
            severity = "note" if still else "error"
            text, remedy = f"tau is {tau[0]:.3g} throughout", "check the column of its torque"
            found.append(Finding(severity, "frozen", text, remedy, joint))
            continue
        for stop in (tau.max(), tau.min()):
            at_stop = [run for run in runs(tau == stop) if run[1] - run[0] + 1 >= HELD_ROWS]
            rows = sum(b - a + 1 for a, b in at_stop)
            others = np.unique(tau[:: max(1, len(tau) // 2000)]).size
            if rows > HELD_SHARE * len(tau) and rows >= 2 * HELD_ROWS and others > 20 and not still:
                text = f"tau holds its extreme value {stop:.4g} for {rows} rows: it is saturated"
                place = where(recording, (at_stop[0][0], at_stop[-1][1]))
                found.append(
                    Finding("warning", "saturated", text, "excite less, or leave these rows out", joint, **place)
                )
    return found


def still_rows(recording: Recording) -> Mask:
    """Rows in which every joint stands still, by the way each goes in a twentieth of a second."""
    width = max(1, min(round(0.5 * SPEED_SECONDS * recording.rate_hz), (len(recording) - 1) // 2))
    if len(recording) < 2 * width + 1:
        return np.zeros(len(recording), dtype=bool)
    way = recording.q[2 * width :] - recording.q[: -2 * width]
    speed = np.abs(way) / (recording.t[2 * width :] - recording.t[: -2 * width])[:, None]
    # One step of an encoder in that time is no motion.
    finest = np.array([_finest(x) for x in recording.q.T])
    limit = np.maximum(standstill_speeds(speed), 1.5 * finest / (2 * width * np.median(np.diff(recording.t))))
    still: Mask = np.all(speed <= limit, axis=1)
    return np.concatenate([np.repeat(still[:1], width), still, np.repeat(still[-1:], width)])


def _finest(x: Array) -> float:
    """The step of an encoder: the smallest change where values stand on a grid, else 0."""
    change = np.abs(np.diff(x))
    if not (change == 0).mean() > 0.02:
        return 0.0
    change = change[change > 0]
    return float(np.quantile(change, 0.05)) if change.size else 0.0


def standstill(recording: Recording) -> tuple[list[Finding], float]:
    """Stretches in which the whole robot stands still, and their share of the time."""
    still = still_rows(recording)
    since = recording.t - recording.t[:1]
    found = []
    share = float(still.mean()) if len(still) else 0.0
    long = [(a, b) for a, b in runs(still) if since[b] - since[a] >= STILL_SECONDS]
    for a, b in sorted(long, key=lambda run: run[0] - run[1])[:5]:
        to_the_end = "to the end" if b == len(still) - 1 else f"to {since[b]:.4g} s"
        text = f"the robot stands still from {since[a]:.4g} s {to_the_end}"
        remedy = "train and test on rows that move"
        severity = "warning" if since[b] - since[a] > 0.1 * recording.duration else "note"
        found.append(
            Finding(severity, "standstill", text, remedy, number=float(since[b] - since[a]), **where(recording, (a, b)))
        )
    return found, share


_MOST_OUTSIDE = 0.5  # of the rows


def _remedy_of_position(q: Array, low: float, high: float) -> str:
    inside = np.mean((np.radians(q) >= low) & (np.radians(q) <= high))
    if np.mean((q < low) | (q > high)) > _MOST_OUTSIDE and inside > _MOST_OUTSIDE:
        return "are these degrees? Say so in the column's name or a mapping, q: {unit: deg}"
    return "check zero, sign and unit of the joint"


def limits(recording: Recording, robot: Robot) -> list[Finding]:
    """Joints beyond the limits of their model."""
    found = []
    for name, low, high in (
        ("q", robot.limits.lower, robot.limits.upper),
        ("qd", -robot.limits.velocity, robot.limits.velocity),
        ("tau", -robot.limits.torque, robot.limits.torque),
    ):
        x = getattr(recording, name)
        if x is None:
            continue
        slack = 1e-3 + 1e-3 * np.abs(np.where(np.isfinite(high), high, 0.0))
        beyond = (x < low - slack) | (x > high + slack)
        for j in np.flatnonzero(beyond.any(axis=0)):
            rows = np.flatnonzero(beyond[:, j])
            worst = float(x[rows, j][np.abs(x[rows, j]).argmax()])
            what = {"q": "position", "qd": "velocity", "tau": "torque"}[name]
            found.append(
                Finding(
                    "warning" if name == "q" else "note",
                    "limit",
                    f"{what} {worst:.4g} is outside the model's {low[j]:.4g} … {high[j]:.4g} in {rows.size} rows",
                    _remedy_of_position(x[:, j], robot.limits.lower[j], robot.limits.upper[j]) if name == "q" else "",
                    recording.joints[j],
                    number=worst,
                    **where(recording, (int(rows[0]), int(rows[-1]))),
                )
            )
    return found


def velocities(recording: Recording) -> tuple[list[Finding], dict[str, list[float | None]]]:
    """Measured velocities against the slope of positions: sign, size, lag."""
    if recording.qd is None or len(recording) < MIN_ROWS:
        return [], {}
    agreements = velocity_agreement(Resample().apply(recording))
    found = []
    for joint, agreement in zip(recording.joints, agreements, strict=True):
        if agreement is None:
            continue
        scale, same = agreement.scale, abs(agreement.correlation)
        if same < 0.9:
            text = f"qd has little to do with the slope of q (correlation {agreement.correlation:.2f})"
            found.append(Finding("error", "velocity", text, "check its column, or leave it out", joint, number=same))
        elif scale < 0:
            text = f"qd has the wrong sign: it is {scale:.3g} times the slope of q"
            remedy = "flip its sign in the mapping; it is not used as it is"
            found.append(Finding("error", "velocity", text, remedy, joint, number=scale))
        elif abs(scale - 1) > 0.03:
            hint = " (degrees against radians?)" if min(abs(scale * k - 1) for k in (57.3, 1 / 57.3)) < 0.05 else ""
            text = f"qd is {scale:.4g} times the slope of q{hint}"
            remedy = "check units and gear ratio of the two; it is not used as it is"
            found.append(Finding("warning", "velocity", text, remedy, joint, number=scale))
    lags = np.array([a.lag_s for a in agreements if a is not None and abs(a.scale - 1) <= 0.03])
    if lags.size and abs(np.median(lags)) > 1.5 / recording.rate_hz:
        text = f"qd is {1e3 * np.median(lags):.2g} ms later than the slope of q"
        found.append(
            Finding("note", "velocity", text, "velocities are taken from positions", number=float(np.median(lags)))
        )
    measures = {
        "velocity_scale": [None if a is None else a.scale for a in agreements],
        "velocity_lag_s": [None if a is None else a.lag_s for a in agreements],
    }
    return found, measures
