"""The robot and the recordings: what was given, and what it is worth."""

from collections.abc import Mapping
from typing import Any

from ..data.findings import Finding, QualityReport
from ..data.quality import inspect_recording
from ..data.recording import Recording
from ..dynamics import base_parameters
from ..identification.model import Experiment
from ..robot.robot import Robot
from .markup import Cell, Html, badge, heading, join, listed, number, paragraph, percent, section, table
from .subject import Subject

_TONES = {"error": "bad", "warning": "care", "note": "calm"}
# Columns of the table of quality: title, measure, factor.
_MEASURES = (
    ("motion up to / Hz", "motion_hz", 1.0),
    ("position noise / mrad", "position_noise", 1e3),
    ("torque noise / N·m", "torque_noise", 1.0),
    ("left by a rigid model / N·m", "torque_residual", 1.0),
    ("left / %", "torque_residual_share", 100.0),
    ("torque over the model's", "torque_scale", 1.0),
)
_DIGITS_OF_A_HASH = 12


def _robot_table(robot: Robot) -> Html:
    limits = robot.limits
    kinds = {joint.dof: joint for joint in robot.joints}
    rows: list[tuple[Cell, ...]] = []
    for k, dof in enumerate(robot.dof_names):
        joint = kinds.get(k)
        rows.append(
            (
                dof,
                joint.kind_name if joint is not None else "",
                joint.body if joint is not None else "",
                *(float(x[k]) for x in (limits.lower, limits.upper, limits.velocity, limits.torque)),
            )
        )
    columns = ("joint", "kind", "moves", "from", "to", "velocity limit", "torque limit")
    return table(columns, rows, "joints, SI units (rad and N·m, m and N where a joint slides)", joints=True)


def _finding(finding: Finding) -> Html:
    text = f"{finding.joint}: {finding.text}" if finding.joint else finding.text
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return join(badge(finding.severity, _TONES[finding.severity]), f"{text}{remedy}")


def _measures(report: QualityReport) -> Html:
    columns = [(title, report.measures[key], by) for title, key, by in _MEASURES if key in report.measures]
    if not columns:
        return Html("")
    rows = [
        (joint, *(None if values[j] is None else float(by * values[j]) for _, values, by in columns))
        for j, joint in enumerate(report.joints)
    ]
    return table(("joint", *(title for title, *_ in columns)), rows, "what the recording shows", joints=True)


def steps_in_words(history: list[Mapping[str, Any]]) -> str:
    """Preprocessing as one line: each step with what it chose."""
    words = []
    for entry in history:
        found = {key: value for key, value in entry.items() if key.startswith("found_") or key == "shift_s"}
        said = ", ".join(f"{key.removeprefix('found_')} {_short(value)}" for key, value in found.items())
        words.append(f"{entry.get('step', '?')}{f' ({said})' if said else ''}")
    return "; ".join(words) or "none"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 3)
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_short(item)}" for key, item in value.items() if item is not None) or "none"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    return str(value)


def _hash(about: Mapping[str, Any]) -> str:
    digest = about.get("sha256")
    if isinstance(digest, str):
        return f", SHA-256 {digest[:_DIGITS_OF_A_HASH]}…"
    return ""


def _recording(one: Experiment, role: str, robot: Robot) -> Html:
    ready = one.recording
    assert isinstance(ready, Recording)
    raw = one.measured or ready
    report = inspect_recording(raw, robot)
    name = str(ready.about.get("source", "recording"))
    title = f"{role}, {raw.duration:.4g} s at {raw.rate_hz:.5g} Hz, {len(raw)} rows{_hash(raw.about)}"
    tone = "bad" if not report.fit else "good" if report.verdict == "good" else "care"
    parts = [heading(name, title), paragraph(join(badge("quality", tone), report.verdict))]
    if report.findings:
        parts.append(listed([_finding(finding) for finding in report.findings]))
    parts.append(_measures(report))
    still = report.measures.get("standstill_share")
    told = f"Standing still {percent(still)} of the time. " if still else ""
    parts.append(
        paragraph(f"{told}Preprocessing: {steps_in_words(list(ready.about.get('preprocessing', ())))}", "note")
    )
    return join(*parts)


def data_section(subject: Subject) -> Html:
    """What was given: robot, recordings, and what an inspection finds in them."""
    robot, data = subject.robot, subject.estimate.data_set
    free = base_parameters(robot).rank
    lead = (
        f"{robot.name}: {robot.n} joints, {len(robot.layout.bodies)} bodies to be identified, "
        f"{len(subject.estimate.names)} parameters, of which torque shows {max(free, data.base_rank)} combinations."
    )
    parts: list[str] = [_robot_table(robot)]
    if robot.notes:
        parts.append(listed([join(badge("model", "calm"), note) for note in robot.notes]))
    given = [(one, "learnt from") for one in subject.training] + [(one, "held out") for one in subject.testing]
    parts += [_recording(one, role, robot) for one, role in given if isinstance(one.recording, Recording)]
    parts += [paragraph(note) for note in subject.notes]
    return section("data", "Robot and data", *parts, lead=lead)
