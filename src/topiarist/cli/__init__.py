"""The command line: one file a command. Heavy imports happen inside the commands, so that `--help` is quick."""

import sys
import warnings
from typing import Annotated, NoReturn, TextIO

import typer

from topiarist.cli import data, measure, predict, train
from topiarist.errors import TopiaristError, TopiaristWarning

WRONG_INPUT = 2
INTERRUPTED = 130

app = typer.Typer(
    name="topiarist",
    help="Give a neural network the size its task needs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
app.command("train")(train.train_command)
app.command("measure")(measure.measure_command)
app.command("predict")(predict.predict_command)
app.add_typer(data.app, name="data")


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Give a neural network the size its task needs."""
    if version:
        from topiarist import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> NoReturn:
    """Run a command; wrong input is one line on standard error and exit code 2."""
    warnings.showwarning = show_warning
    try:
        code = app(standalone_mode=False)
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
    """Say what was wrong with the words of the call, and where help is."""
    context = getattr(error, "ctx", None)
    said = error.format_message() if hasattr(error, "format_message") else str(error)
    where = "topiarist" if context is None else context.command_path
    return f"{' '.join(said.split())} (see: {where} --help)"


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
