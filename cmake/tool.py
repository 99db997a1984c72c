"""The start and the end of a Python tool that starts other programs."""

import signal
import sys


def run(main):
    """Ends the process with main()'s exit status, and with 130 after Ctrl-C. ./lab starts tools
    with SIGINT blocked, since Python prints a traceback if Ctrl-C comes before this function."""
    # If this process's parent ignored it, the exit status of every child would read as 0.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        sys.exit(main())
    except KeyboardInterrupt:
        print()
        sys.exit(130)
