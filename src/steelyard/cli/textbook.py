"""The command on the exercises of a textbook chapter."""

from dataclasses import asdict
from typing import Annotated

import typer

from ..errors import OptionError, unknown_name
from ..textbook.answer import Answer
from ..textbook.book import EXERCISES, solve
from ..textbook.checklists import CHECKLISTS
from .options import AsJson, Seed
from .output import add_row, console, number, print_json, say, table
from .progress import reporting

_LISTS = "checklists"


def _cell(value: float | str | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 5) if isinstance(value, float | int) else value


def _print(answer: Answer) -> None:
    out = console()
    columns = ("", "the chapter", "ours", "unit")
    listing = table(f"{answer.number}  {answer.title}", *columns, right=columns[1:3])
    told = [line for line in answer.lines if isinstance(line.ours, str)]
    for line in answer.lines:
        if line not in told:
            add_row(listing, line.what, _cell(line.book), _cell(line.ours), line.unit)
    out.print(listing)
    for line in told:
        say(out, f"{line.what}: {line.ours}")
    for text in answer.differs:
        say(out, f"· {text}")
    for command in answer.commands:
        say(out, f"With a robot of one's own: {command}")
    say(out, "")


def _print_lists() -> None:
    out = console()
    for name, checks in CHECKLISTS.items():
        listing = table(name, "what the chapter asks for", "what answers it", "command")
        for check in checks:
            add_row(listing, *check)
        out.print(listing)
        say(out, "")


def textbook(
    exercises: Annotated[
        list[str] | None, typer.Argument(help="7.1 … 7.8, formulas, checklists; default: all of them.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """The exercises of a textbook chapter on dynamics, computed and set beside its numbers, and where it errs.

    Examples: `steelyard textbook`, `steelyard textbook 7.4 7.5`, `steelyard textbook formulas --json`
    """
    valid = (*EXERCISES, _LISTS)
    chosen = list(dict.fromkeys(exercises or valid))
    for name in chosen:
        if name not in valid:
            raise OptionError(unknown_name("exercise", name, valid))
    answers = []
    with reporting() as report:
        for k, name in enumerate(name for name in chosen if name != _LISTS):
            report(f"exercise {name}", k / len(chosen))
            answers.append(solve(name, seed))
    if as_json:
        content: dict[str, object] = {"seed": seed, "exercises": [asdict(answer) for answer in answers]}
        if _LISTS in chosen:
            content[_LISTS] = {name: [check._asdict() for check in checks] for name, checks in CHECKLISTS.items()}
        print_json(content)
        return
    for answer in answers:
        _print(answer)
    if _LISTS in chosen:
        _print_lists()


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("textbook")(textbook)
