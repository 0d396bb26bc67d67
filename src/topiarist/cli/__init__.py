"""The command line: one file per command, of which only the one that is called is loaded."""

import sys
from typing import NoReturn

from topiarist.cli.streams import flush_streams, open_streams


def main() -> NoReturn:
    """Run a command and exit with its code; Ctrl-C while Python still imports is one line too."""
    open_streams()
    try:
        from topiarist.cli.program import run

        code = run()
    except KeyboardInterrupt:
        print("topiarist: interrupted: run the same command again", file=sys.stderr)
        code = 130
    failed = flush_streams()
    if failed is not None and code == 0:
        code = 1 if isinstance(failed, BrokenPipeError) else 2
        if code == 2:
            print(f"topiarist: cannot use its input or output: {failed.strerror}", file=sys.stderr)
    sys.exit(code)
