"""The whole program: its commands, and what becomes of errors."""

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer

from topiarist.errors import TopiaristError, TopiaristWarning, escaped, is_out_of_memory

WRONG_INPUT = 2
OUR_MISTAKE = 70  # EX_SOFTWARE of sysexits.h
LONGEST_LINE = 2000  # characters of an error: a name in a file may have a million
LONGEST_REASON = 200  # characters of an error that may quote whole files
TYPED = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")  # where the scripts of --install-completion put a line
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
    "doctor": "Show what this machine has, what is missing, and the command that installs it.",
    "data": "List, download and inspect data sets; turn sounds into spectrograms.",
}


def words_of_call() -> list[str]:
    """Return the words of the call, or those of a line that a shell wants to complete."""
    completing = "_TOPIARIST_COMPLETE" in os.environ
    typed = next((os.environ[name] for name in TYPED if completing and name in os.environ), None)
    return sys.argv[1:] if typed is None else typed.split()[1:]


def build_app(words: Sequence[str]) -> typer.Typer:
    """Return the command line for the words of a call: other commands are there by name alone."""
    app = typer.Typer(
        name="topiarist",
        help="Give a neural network the size its task needs.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
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


def run() -> int:
    """Run a command and return its exit code.

    What the caller can correct is one line on standard error and exit code 2, Ctrl-C one and 130. The last resort,
    for what nobody thought of, is one line too, and exit code 70: it names a file with the traceback.
    """
    from topiarist.cli.output import InterruptionError

    warnings.showwarning = show_warning
    os.environ["MPLBACKEND"] = "agg"  # commands draw into files; matplotlib cannot be imported with a name it lacks
    try:
        code = build_app(words_of_call())(prog_name="topiarist", standalone_mode=False)
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
    except Exception as error:
        code = last_resort(error)
    return code if isinstance(code, int) else 0


def complain(message: str) -> int:
    """Print one line on standard error, and return the exit code of wrong input."""
    said = escaped(" ".join(message.split()))
    if len(said) > LONGEST_LINE:
        said = f"{said[: LONGEST_LINE // 2]} … {said[-LONGEST_LINE // 2 :]}"
    with suppress(OSError):  # standard error may be full; the exit code is there all the same
        typer.echo(f"topiarist: {said}", err=True)
    return WRONG_INPUT


def last_resort(error: Exception) -> int:
    """Print one line on what no command foresaw, and return the exit code."""
    if is_out_of_memory(error):
        return complain("the memory of this machine does not suffice: use fewer samples, or a smaller network")
    if isinstance(error, OSError) and error.errno is not None:
        what = "its input or output" if error.filename is None else error.filename
        return complain(f"cannot use {what}: {error.strerror}")
    said = " ".join(str(error).split())[:LONGEST_REASON]
    complain(f"a mistake in topiarist: {type(error).__name__}: {said}; {where_traceback_is(error)}")
    return OUR_MISTAKE


def where_traceback_is(error: Exception) -> str:
    """Write the traceback to a temporary file, and return where it is."""
    import tempfile
    import traceback

    from topiarist import __version__

    lines = [f"topiarist {__version__}, Python {sys.version}\n", f"{sys.argv}\n", *traceback.format_exception(error)]
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="topiarist-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.writelines(lines)
    except OSError as refusal:
        return f"its traceback could not be written ({refusal})"
    return f"please report it with {file.name}, which has the traceback"


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
        typer.echo(f"topiarist: note: {escaped(str(message))}", err=True)
