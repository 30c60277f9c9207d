"""The command `steelyard`: exit code 0 fine, 2 the user's input, 1 ours."""

import os
import sys

import typer

from ..errors import SteelyardError
from .catalogue import Catalogue

app = typer.Typer(
    name="steelyard",
    cls=Catalogue,
    help="Identify the true dynamics of a robot: masses, centres of mass, inertias, rotor inertia, friction.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        print(f"steelyard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Say nothing but the result."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Say on standard error what is being done."),
) -> None:
    """Quiet and verbose hold for the command after them, and for the processes that it starts."""
    for name, asked in (("STEELYARD_QUIET", quiet), ("STEELYARD_VERBOSE", verbose)):
        if asked:
            os.environ[name] = "1"


def _stop_writing() -> None:
    """Nothing more to standard output, or the interpreter would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; what the user can mend is one sentence, what we broke says where to look."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where what goes wrong can still be said
    except SteelyardError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except MemoryError as error:
        print(f"error: this asks for more memory than there is ({error}); make it shorter or coarser", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        # The reader of our output has seen enough (`| head`).
        _stop_writing()
        raise SystemExit(0) from None
    except OSError as error:
        _stop_writing()
        what = f"{error.filename}: " if error.filename else "the output cannot be written: "
        print(f"error: {what}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None
    except Exception as error:
        if os.environ.get("STEELYARD_DEBUG"):
            raise
        print(
            f"internal error: {type(error).__name__}: {error}\nThis is a fault in Steelyard, not in your input; "
            "set STEELYARD_DEBUG=1 to see where it happened.",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
