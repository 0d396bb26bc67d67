"""The command line: one file per command, of which only the one that is called is loaded."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn, TextIO

import typer

from topiarist.errors import TopiaristError, TopiaristWarning

WRONG_INPUT = 2
INTERRUPTED = 130  # typer, too, returns this number for a KeyboardInterrupt

# Each command with its line in the help; its module has an `app` (a group) or a function `<name>_command`.
COMMANDS = {
    "rightsize": "Find the smallest network that is not worse than the baseline, prove it, save, export and report it.",
    "train": "Train a network, measure it and save it.",
    "resize": "Resize a trained network by a method, to a budget, and save it.",
    "anatomy": "Show the units of a network: what writes and reads them, which can go, and what holds the others.",
    "recommend": "Recommend widths and a depth for a network, from its weights and training samples.",
    "measure": "Measure accuracy and log loss, or the metrics of another task; parameters, size, MACs and latency.",
    "predict": "Predict the class of every sample; no labels are needed.",
    "export": "Write a network with its preprocessing as ONNX or for torch.export.",
    "report": "Write the report of a rightsizing again, from its record.",
    "study": "Compare configurations over folds and seeds, with statistics.",
    "reproduce": "Run a published system as a ready-made study.",
    "data": "List, download and inspect data sets; turn sounds into spectrograms.",
}


def build_app(words: Sequence[str]) -> typer.Typer:
    """Return the command line for the words of a call: other commands are there by name alone."""
    app = typer.Typer(
        name="topiarist",
        help="Give a neural network the size its task needs.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode="markdown",
    )
    app.callback()(common)
    called = next((word for word in words if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        module = import_module(f"topiarist.cli.{name}") if name == called else None
        if module is not None and hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            run = (lambda: None) if module is None else getattr(module, f"{name}_command")
            app.command(name, help=summary if module is None else None)(run)
    return app


def print_version(asked: bool) -> None:
    """Print the version and stop, before a missing command is noticed."""
    if asked:
        from topiarist import __version__

        typer.echo(__version__)
        raise typer.Exit


def common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    """Give a neural network the size its task needs."""


def main() -> NoReturn:
    """Run a command; wrong input is one line on standard error and exit code 2, an interruption one line and 130."""
    from topiarist.cli.output import InterruptionError

    warnings.showwarning = show_warning
    try:
        code = build_app(sys.argv[1:])(standalone_mode=False)
        if code == INTERRUPTED:
            complain("interrupted: run the same command again")
    except InterruptionError as interruption:
        complain(str(interruption))
        code = INTERRUPTED
    except TopiaristError as error:
        code = complain(str(error))
    except typer.TyperException as error:
        code = complain(usage_message(error))
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def complain(message: str) -> int:
    """Print one line on standard error, and return the exit code of wrong input."""
    typer.echo(f"topiarist: {message}", err=True)
    return WRONG_INPUT


def usage_message(error: typer.TyperException) -> str:
    """Return what is wrong with the call, what was found, and where help is."""
    context = getattr(error, "ctx", None)
    text = " ".join(error.format_message().split()) or "Missing command."
    text = text.replace(": Value error, ", ": ").replace(": Input should ", ": it must ")
    complaints: list[Any] = getattr(error.__cause__, "errors", list)()  # of pydantic, which checks the values for typer
    if complaints and repr(complaints[0]["input"]) not in text:
        text = f"{text}; found {complaints[0]['input']!r}"
    where = "topiarist" if context is None else context.command_path
    return f"{text} (see: {where} --help)"


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print what was decided on the user's behalf as one line on standard error."""
    if issubclass(category, TopiaristWarning):
        typer.echo(f"topiarist: note: {message}", err=True)
