"""Standard input, output and error as they may be: closed, full, or of an encoding that lacks letters."""

import os
import sys

NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}  # of POSIX


def open_streams() -> None:
    """Open what is closed of the standard streams, to nothing, and let the others write letters that they lack as \\u….

    A number that is free would be that of the next file which is opened: what is printed would go there.
    """
    for name, number in NUMBERS.items():
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> OSError | None:
    """Write what is left in standard output and error; return why that failed, where it did.

    What cannot be written is dropped: Python would try again when it ends, and end with a code of its own.
    """
    failed = None
    for stream in (sys.stdout, sys.stderr):
        try:
            if not stream.closed:
                stream.flush()
        except OSError as error:
            failed = failed or error
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            stream.flush()
    return failed
