"""The command line: one file a command. Heavy imports happen inside the commands, so that `--help` is quick."""

import sys
import warnings
from typing import Annotated, Any, NoReturn, TextIO

import typer

from topiarist.cli import data, export, measure, predict, report, reproduce, rightsize, shape, study, train
from topiarist.cli.output import InterruptionError
from topiarist.errors import TopiaristError, TopiaristWarning

WRONG_INPUT = 2
INTERRUPTED = 130  # typer, too, gives this number for a KeyboardInterrupt

app = typer.Typer(
    name="topiarist",
    help="Give a neural network the size its task needs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
app.command("rightsize")(rightsize.rightsize_command)
app.command("train")(train.train_command)
app.command("shape")(shape.shape_command)
app.command("measure")(measure.measure_command)
app.command("predict")(predict.predict_command)
app.command("export")(export.export_command)
app.command("report")(report.report_command)
app.add_typer(study.app, name="study")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(data.app, name="data")


def print_version(asked: bool) -> None:
    """Print the version and stop, before a command is missed."""
    if asked:
        from topiarist import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    """Give a neural network the size its task needs."""


def main() -> NoReturn:
    """Run a command; wrong input is one line on standard error and exit code 2, an interruption one line and 130."""
    warnings.showwarning = show_warning
    try:
        code = app(standalone_mode=False)
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
    """Print one line."""
    typer.echo(f"topiarist: {message}", err=True)
    return WRONG_INPUT


def usage_message(error: typer.TyperException) -> str:
    """Say what was wrong with the words of the call, what was found in its place, and where help is."""
    context = getattr(error, "ctx", None)
    said = " ".join(error.format_message().split()) or "Missing command."
    said = said.replace(": Value error, ", ": ").replace(": Input should ", ": it must ")
    complaints: list[Any] = getattr(error.__cause__, "errors", list)()  # of pydantic, which checks the values for typer
    if complaints and repr(complaints[0]["input"]) not in said:
        said = f"{said}; found {complaints[0]['input']!r}"
    where = "topiarist" if context is None else context.command_path
    return f"{said} (see: {where} --help)"


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
