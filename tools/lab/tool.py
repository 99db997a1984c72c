"""The start and the end of a Python tool that starts other programs."""

import errno
import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
caller = ROOT  # the folder in which ./lab was started


class Failure(Exception):
    """A command of ./lab cannot go on. The message is one line for the user."""

    status = 1  # of ./lab

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = self.status if status is None else status


def told(error: Exception) -> str:
    """An error in words for the user."""
    file = str(getattr(error, "filename", ""))
    if getattr(error, "errno", 0) in (errno.EACCES, errno.EROFS) and file.startswith(str(ROOT)):
        return (f"{file}: {os.strerror(error.errno)}. ./lab writes in the repository's folder: "
                "take a copy that is yours (git clone)")
    return str(error)


def run(main):
    """Ends the process with main()'s exit status, with 130 after Ctrl-C, and with 143 after
    SIGTERM, when everything temporary is removed. ./lab starts Python with SIGINT blocked, since
    Python prints a traceback if Ctrl-C comes before this function."""
    # These are None if the caller has closed them.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    # If this process's parent ignored it, the exit status of every child would read as 0.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for ends in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ends) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(ends, lambda number, _: sys.exit(128 + number))
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        sys.exit(main())
    except KeyboardInterrupt:
        print()
        sys.exit(130)


def become(*command):
    """Goes on as another program, which gets the signals and gives the exit status."""
    sys.stdout.flush()
    # Python ignores these two, and a program would inherit that.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    words = [str(word) for word in command]
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise Failure(f"could not start {words[0]}: {error.strerror}") from None
