#!/usr/bin/env python3
"""Steps through an execution on a terminal, as ./lab explore --step does.

    step.py explore_05"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "player/terminal.py"
KEYS = [b"\x1bOC", b"\x1bOC", b"\x1bOD", b"\x1bOF", b"\x1bOB", b"q"]  # right, left, end, down
SHOWN = ["all end: step 1 of 22", "all end: step 3 of 22", "all end: step 22 of 22",
         "stores 1 into rank 1's box0(from 0), plain", "limits may pass: step 1 of"]


def on_terminal(command: list) -> tuple:
    """What the command shows on a terminal of 40 lines while KEYS are pressed, and its status."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    shown, keys, end = b"", list(KEYS), time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # it has ended
                break
        elif keys and shown:  # it waits for a key
            os.write(terminal, keys.pop(0))
    return shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/barrier.json"
        subprocess.run([sys.argv[1], "barrier/2x1", f"--record={file}", "--executions=1"],
                       stdout=subprocess.DEVNULL)
        command = [sys.executable, "-B", str(PROGRAM), file]
        shown, status = on_terminal(command)
        missing = [text for text in SHOWN if text not in shown]
        print(f"status {status}, missing: {missing}")
        alone = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(f"without a terminal: status {alone.returncode}, {alone.stderr}", end="")
        return 0 if status == 0 and not missing and alone.returncode == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
