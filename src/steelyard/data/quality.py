"""`inspect_recording`: what a recording is worth, before anything is computed from it."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError, SteelyardError
from ..robot.robot import Robot
from . import inspect_log as log
from . import inspect_model as model
from .filters import motion_bands, moving
from .findings import Finding, QualityReport, by_severity
from .preprocess import TIMES_THE_MOTION, preprocess
from .recording import Recording
from .resample import Repair, Resample
from .spectrum import MIN_ROWS, power_spectrum
from .steps import even_rate

# The model's part looks at the liveliest stretch of a long recording.
MOST_ROWS = 200_000
FEWEST_ROWS = 8


def _liveliest(recording: Recording, rows: int) -> Recording:
    """The stretch of so many rows in which joints go furthest."""
    if len(recording) <= rows:
        return recording
    way = np.concatenate([[0.0], np.cumsum(np.nansum(np.abs(np.diff(recording.q, axis=0)), axis=1))])
    starts = np.arange(0, len(recording) - rows + 1, max(1, rows // 10))
    first = int(starts[np.argmax(way[starts + rows - 1] - way[starts])])
    return recording.between(first, first + rows)


def _against_model(recording: Recording, robot: Robot) -> tuple[list[Finding], dict[str, Any]]:
    if robot.nq != robot.n:
        text = f"{robot.name} has ball or free joints; torques are not held against the model"
        return [Finding("note", "model", text)], {}
    if robot.n != recording.n:
        text = f"the recording has {recording.n} joints and {robot.name} has {robot.n}"
        remedy = "choose its columns with a mapping, or hold joints with --lock"
        return [Finding("error", "model", text, remedy)], {}
    found = log.limits(recording, robot)
    part = _liveliest(recording, MOST_ROWS)
    data = model.thinned(preprocess(part, None, robot), robot)
    if data is None:
        text = f"too few independent rows to hold torques against {robot.name}"
        return [*found, Finding("warning", "short", text, "record for longer")], {}
    measures: dict[str, Any] = {"independent_rows": len(data.t)}
    for check in (model.torque_scale, model.misfit, model.mounting, model.delay, model.excitation):
        findings, numbers = check(data)
        found += findings
        measures |= numbers
    return found, measures


def _spectra(recording: Recording) -> dict[str, Any]:
    """The motion's band and the noise of positions, a number a joint."""
    rate = even_rate(recording, "the spectrum")
    joints = moving(recording.q)
    motion: list[float | None] = [None] * recording.n
    noise: list[float | None] = [None] * recording.n
    for j, band in zip(joints, motion_bands(replace(recording, qd=None), rate)[0], strict=True):
        motion[j], noise[j] = band.motion_hz, band.noise
    measures: dict[str, Any] = {"motion_hz": motion, "position_noise": noise}
    fastest = max((hz for hz in motion if hz is not None), default=0.0)
    if len(recording) >= MIN_ROWS and 0 < TIMES_THE_MOTION * fastest < 0.4 * rate:
        # What torque has far above the motion is noise, and corners of friction, of which the median and the upper
        # half of the band see least; the median is ln 2 times the mean of a periodogram of noise.
        f, P = power_spectrum(recording.tau, rate)
        level = np.median(P[f > max(TIMES_THE_MOTION * fastest, 0.25 * rate)], axis=0) / np.log(2)
        measures["torque_noise"] = np.sqrt(level * rate / 2).tolist()
    return measures


def inspect_recording(recording: Recording, robot: Robot | None = None) -> QualityReport:
    """Look for what spoils an identification: clock, missing and frozen values, standstill, limits, velocities that
    do not fit positions; with a robot also delay, units and sign of torque, mounting, excitation and noise.
    """
    found = log.told_by_reader(recording)
    measures: dict[str, Any] = {}
    if len(recording) < FEWEST_ROWS or not recording.n:
        text = f"{len(recording)} rows of {recording.n} joints are too few to say anything"
        found.append(Finding("error", "short", text, "record for longer"))
    else:
        # NumPy's complaints about values that are reported here by name would only repeat it.
        with np.errstate(all="ignore"):
            found += [*log.clock(recording), *log.values(recording)]
            try:
                mended = Repair().apply(recording)
                even = Resample().apply(mended)
            except DataError as error:
                found.append(Finding("error", "missing", str(error)))
            else:
                still, share = log.standstill(mended)
                velocity, agreement = log.velocities(mended)
                found += [*log.held_channels(mended), *still, *velocity]
                measures |= {"standstill_share": share, **_spectra(even), **agreement}
                if robot is not None:
                    try:
                        findings, numbers = _against_model(mended, robot)
                    except SteelyardError as error:
                        findings, numbers = [Finding("error", "model", str(error))], {}
                    found += findings
                    measures |= numbers
    rate = recording.rate_hz if len(recording) > 1 else 0.0
    return QualityReport(len(recording), recording.duration, rate, recording.joints, by_severity(found), measures)
