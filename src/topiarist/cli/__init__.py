"""The command line: one file per command, of which only the one that is called is loaded."""

import sys
from typing import NoReturn

from topiarist.cli.streams import open_streams


def main() -> NoReturn:
    """Run a command and exit with its code; Ctrl-C while Python still imports is one line too."""
    open_streams()
    try:
        from topiarist.cli.program import run

        code = run()
    except KeyboardInterrupt:
        print("topiarist: interrupted: run the same command again", file=sys.stderr)
        code = 130
    sys.exit(code)
