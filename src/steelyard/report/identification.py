"""The report of an identification: one HTML file, the verdict first."""

from collections.abc import Sequence
from pathlib import Path

from ..errors import OptionError
from ..evaluation.result_compare import ResultComparison
from ..evaluation.study import Outcome
from ..evaluation.truth import Truth
from ..excitation.design import Excitation
from ..identification.result_file import SavedResult
from .comparison import comparison_section
from .data_section import data_section
from .markup import Html, facts, html, join, listed, paragraph, percent
from .method_section import method_section
from .motion_section import motion_section
from .page import page, write_text
from .parameter_section import parameter_section
from .residual_section import residual_section
from .scene import scene_section
from .subject import Piece, Subject, pieces_of, subject_of, subject_of_saved
from .torque_section import torque_section

# A base parameter that is known to within this many per cent (one deviation) counts as sure.
_SURE = 30.0
SUFFIXES = (".html", ".htm")


def _judgement(subject: Subject) -> tuple[str, str]:
    """The verdict in a few words, and its tone."""
    found, judged = subject.estimate, subject.validation
    if not found.converged:
        return "The estimator did not converge", "bad"
    if judged is None:
        return "Nothing was held out to judge by", "care"
    if judged.better:
        whole = found.data_set.rank == found.data_set.base_rank
        if whole and not found.invalid:
            return "Better than the nominal model, and physical", "good"
        return "Better than the nominal model, with reservations", "care" if found.invalid else "good"
    if judged.relative < judged.nominal_relative:
        return "Not surely better than the nominal model", "care"
    alike = judged.verdict.startswith("as good")
    return (
        ("As good as the nominal model, no better", "care") if alike else ("Not better than the nominal model", "bad")
    )


def _figures(subject: Subject) -> Html:
    found, judged, data = subject.estimate, subject.validation, subject.estimate.data_set
    values: list[tuple[str, str, str]] = []
    if judged is not None:
        values.append(
            (
                "Torque error",
                percent(judged.relative),
                f"nominal model {percent(judged.nominal_relative)}; on {subject.held_out}",
            )
        )
    sure = int((found.base_relative < _SURE).sum())
    values += [
        ("Base parameters shown", f"{data.rank} of {data.base_rank}", f"condition number {data.condition:.3g}"),
        ("Known within 30 %", f"{sure} of {len(found.base_relative)}", "one standard deviation of each base parameter"),
    ]
    if subject.truth is not None:
        t = subject.truth
        error = f"error {percent(t.relative_error)}, nominal model {percent(t.nominal_error)}"
        values.append(("Truth within 95 % intervals", f"{t.inside} of {t.count}", error))
    bodies = len({reason.subject for reason in found.invalid})
    values.append(
        ("Physical", "yes", "real bodies can have these parameters")
        if not bodies
        else (
            "Physical",
            "no",
            join(f"{bodies} bodies or joints could not exist so; identify with ", Html("<code>--physical</code>")),
        )
    )
    values.append(("Method", found.method, f"{found.iterations} iterations, {found.seconds:.2g} s"))
    return facts(values)


def _verdict(subject: Subject) -> Html:
    words, tone = _judgement(subject)
    parts = [Html(f'<p class="word">{html(words)}</p>'), paragraph(subject.verdict), _figures(subject)]
    if subject.missing:
        parts.append(listed([f"Left out: {what}" for what in subject.missing]))
    return Html(f'<section id="verdict" class="verdict {tone}">{join(*parts)}</section>')


def _physical(subject: Subject) -> Html:
    reasons = [str(reason) for reason in subject.estimate.invalid]
    if not reasons:
        return Html("")
    more = f"{len(reasons)} reasons why no real robot could have these parameters"
    return Html(f"<details><summary>{html(more)}</summary>{listed(reasons)}</details>")


def _foot(subject: Subject) -> Html:
    about = subject.estimate.about.get("versions") or {}
    versions = ", ".join(f"{name} {version}" for name, version in about.items())
    command = join(Html('<p>Made by <span class="command">steelyard '), subject.command, Html("</span></p>"))
    return join(command if subject.command else "", Html(f"<p>{html(versions)}</p>"))


def report_page(
    subject: Subject,
    *,
    trajectory: Excitation | None = None,
    comparison: ResultComparison | None = None,
    beside: str | None = None,
) -> Html:
    """The page; parts that need recordings are left out where there are none."""
    pieces: Sequence[Piece] = pieces_of(subject)
    made: dict[str, tuple[str, Html]] = {"verdict": ("Verdict", _verdict(subject))}
    made["data"] = ("Data", data_section(subject))
    if pieces and any(not piece.held_out for piece in pieces):
        made["excitation"] = ("Excitation", motion_section(subject, trajectory))
    if pieces:
        made["torque"] = ("Torque", torque_section(subject, pieces))
    made["parameters"] = ("Parameters", join(parameter_section(subject)))
    if pieces:
        made["residuals"] = ("Residuals", residual_section(subject, pieces))
    made["methods"] = ("Estimators", method_section(subject))
    if comparison is not None:
        made["comparison"] = ("Comparison", comparison_section(comparison))
    made["scene"] = ("3-D", scene_section(subject, pieces, beside))
    names = ", ".join(dict.fromkeys(piece.name for piece in pieces))
    return page(
        f"Identification of {subject.robot.name}",
        [*(body for _, body in made.values()), _physical(subject)],
        subtitle=f"{subject.estimate.method}{f' on {names}' if names else ''}",
        contents={name: title for name, (title, _) in made.items()},
        joints=subject.robot.dof_names,
        foot=_foot(subject),
        scripts=("scene.js", "page.js"),
    )


def checked_report_path(path: Path) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"{path}: give a report's name that ends in {' or '.join(SUFFIXES)}")
    return path


def write_saved_report(saved: SavedResult, path: str | Path) -> tuple[str, ...]:
    """Write the report of a result file; returns what could not be on the page, and why."""
    path = checked_report_path(Path(path))
    subject = subject_of_saved(saved)
    write_text(path, report_page(subject))
    return subject.missing


def write_report(
    outcome: Outcome,
    path: str | Path,
    *,
    truth: Truth | None = None,
    trajectory: Excitation | None = None,
    comparison: ResultComparison | None = None,
    command: str = "",
) -> Path:
    """Write the report of a study as one HTML file that needs no network."""
    path = checked_report_path(Path(path))
    subject = subject_of(outcome, truth, command)
    write_text(path, report_page(subject, trajectory=trajectory, comparison=comparison))
    return path
