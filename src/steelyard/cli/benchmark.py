"""The command that sets estimators against each other."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..errors import OptionError
from ..evaluation.campaign.campaign import Campaign, Cost, costs, look_at_campaign, run_campaign
from ..evaluation.campaign.engine import Crew, Watch, default_workers
from ..evaluation.campaign.scene import load_settings
from ..evaluation.campaign.settings import Study, narrowed, read_study, study_names
from ..evaluation.campaign.summary import as_records
from ..report.campaign import COLUMNS, noise_of, write_campaign_report
from .options import AsJson, is_quiet, names
from .output import add_row, console, number, print_json, say, table

_SHOWN = (
    "runs", "converged", "wrong", "failed", "torque error", "position error", "parameter error", "bias", "efficiency",
    "coverage", "feasible", "time",
)  # fmt: skip


@contextmanager
def _watched() -> Iterator[Watch]:
    """Tasks done and the time left, for people who watch."""
    err = Console(stderr=True, highlight=False)
    if is_quiet() or not err.is_terminal:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True, speed_estimate_period=600) as bar:
        shown = bar.add_task("tasks", total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total)


def _tell(text: str) -> None:
    if not is_quiet():
        say(Console(stderr=True, highlight=False), text)


def _narrowed(study: Study, estimators: str | None, guesses: int | None, seeds: int | None) -> Study:
    changes = {
        "estimators": names(estimators) if estimators is not None else None,
        "guesses": guesses,
        "seeds": seeds,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        return study
    if given.get("estimators") == []:
        raise OptionError("no estimator was named; leave --estimators out for those of the study")
    return narrowed(study, given)


def _print_costs(found: Sequence[Cost], workers: int, as_json: bool) -> None:
    total = sum(cost.hours for cost in found)
    if as_json:
        shared, *each = ({"runs": c.runs, "seconds_a_run": c.seconds_a_run, "hours": c.hours} for c in found)
        told = dict(zip([cost.estimator for cost in found[1:]], each, strict=True))
        ways = {"hours": total, "workers": workers, "hours_with_workers": total / workers}
        print_json({"recordings": shared, "estimators": told, **ways})
        return
    out = console()
    made = table(None, "estimator", "runs", "s a run", "runs/s", "hours", right=("runs", "s a run", "runs/s", "hours"))
    for cost in found:
        rate = number(1.0 / cost.seconds_a_run, 3) if cost.seconds_a_run > 0 else "–"
        add_row(made, cost.estimator, str(cost.runs), number(cost.seconds_a_run, 3), rate, number(cost.hours, 3))
    out.print(made)
    say(out, f"{total:.3g} processor hours in all, about {total / workers:.3g} h with {workers} workers")


def _print_scores(campaign: Campaign) -> None:
    out = console()
    level = ""
    made = None
    for score in campaign.scores:
        here = f"{score.robot}, friction {score.friction}, preprocessing {score.preprocessing}, {noise_of(score)}"
        if here != level:
            if made is not None:
                out.print(made)
                out.print()
            level = here
            say(out, here)
            made = table(None, "estimator", *_SHOWN, right=_SHOWN)
        assert made is not None
        add_row(made, score.estimator, *(COLUMNS[name].text(score) for name in _SHOWN))
    if made is not None:
        out.print(made)
    work, done = campaign.work, len(campaign.table["status"])
    if work is not None and work.runs:
        say(out, f"{work.runs} runs in {work.seconds:.1f} s: {work.rate:.3g} runs/s")
    if work is None or work.runs < done:
        say(out, f"{done} of {campaign.runs} runs were there" if work is None else f"{done - work.runs} were there")


def _print_json(campaign: Campaign, page: Path) -> None:
    work = campaign.work
    now = {"runs": work.runs, "seconds": work.seconds, "runs_a_second": work.rate} if work else None
    told = {"study": campaign.study.name, "runs": len(campaign.table["status"]), "of": campaign.runs, "now": now}
    told |= {"levels": as_records(campaign.levels), "scores": as_records(campaign.scores)}
    print_json({**told, "written": [str(campaign.path), str(page)]})


def benchmark_command(
    study: Annotated[str, typer.Argument(help=f"A study file, .yaml, or one of {', '.join(study_names())}.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results; default: benchmark-STUDY.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default: as many as processors.", min=1)] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Let the workers of a Dask scheduler do it: tcp://host:8786.")
    ] = None,
    estimators: Annotated[
        str | None, typer.Option("--estimators", metavar="A,B,…", help="These estimators; or linear, or all.")
    ] = None,
    guesses: Annotated[int | None, typer.Option(help="So many initial guesses.", min=1)] = None,
    seeds: Annotated[int | None, typer.Option(help="So many noise runs.", min=1)] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Try each estimator once and say how long the whole would take.")
    ] = False,
    so_far: Annotated[
        bool, typer.Option("--so-far", help="Do nothing new: table and report of what has been done so far.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set estimators against each other on robots whose parameters are known, thousands of runs in one table.

    A study that was stopped goes on where it was; one that has been widened does only what is new.

    Example: `steelyard benchmark quick`, `steelyard benchmark birdy-tx40 --estimators linear --seeds 5`
    """
    chosen = _narrowed(read_study(study, load_settings), estimators, guesses, seeds)
    folder = Path(f"benchmark-{chosen.name}") if output is None else output
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file; give a folder for the results")
    if so_far and estimate:
        raise OptionError("--so-far and --estimate are two questions; ask one at a time")
    crew = Crew(workers or default_workers(), scheduler)
    if estimate:
        _print_costs(costs(chosen, folder, _tell), crew.workers, as_json)
        return
    if so_far:
        campaign = look_at_campaign(chosen, folder, _tell)
    else:
        with _watched() as watch:
            campaign = run_campaign(chosen, folder, crew, _tell, watch)
    page = folder / ("so-far.html" if so_far else "report.html")
    write_campaign_report(campaign, page)
    if as_json:
        _print_json(campaign, page)
        return
    _print_scores(campaign)
    for path in (campaign.path, page):
        say(console(), f"wrote {path}")


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("benchmark")(benchmark_command)
