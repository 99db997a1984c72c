"""Runs ninja, and shows its progress in one line: building 17 of 63, about 20 s left.

Prints nothing if everything is built already. The compiler's output is passed on. On a terminal
the line is rewritten; elsewhere a new line is printed every 15 seconds.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

STATUS = "[%f/%t] "  # finished, total
# Seconds for a file that was never built here; all others 0.3.
GUESS = {".cu.o": 8.0, ".cpp.o": 3.0, ".cxx.o": 6.0}
NO_SPACE = "No space left on device|Disk quota exceeded"


def past_seconds(directory: str) -> dict:
    """The time of each file's last build."""
    past = {}
    try:
        with open(os.path.join(directory, ".ninja_log"), encoding="utf-8") as log:
            for line in log:
                fields = line.rstrip("\n").split("\t")
                if len(fields) == 5:
                    past[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    except OSError:
        pass
    return past


def seconds_of(step: str, past: dict) -> float:
    """The expected time of a step, from its description: Building CXX object lab/x.cpp.o"""
    file = step.rsplit(" ", 1)[-1]
    guess = next((s for ending, s in GUESS.items() if file.endswith(ending)), 0.3)
    return past.get(file, guess)


class Line:
    """The line that shows the build's progress."""

    def __init__(self, is_wanted: bool = True):
        self.is_wanted = is_wanted
        self.is_terminal = sys.stdout.isatty()
        self.printed = 0.0 if is_wanted else time.monotonic()

    def show(self, text: str):
        if self.is_terminal:
            print(f"\r{text[:os.get_terminal_size().columns - 1]}\033[K", end="", flush=True)
        elif time.monotonic() - self.printed >= 15:
            self.printed = time.monotonic()
            print(text, flush=True)

    def clear(self):
        if self.is_terminal:
            print("\r\033[K", end="", flush=True)


def require_space(directory: str, output: str = ""):
    """Raises OSError if a disk is full: that of the directory, or of temporary files, as far as the
    output of a failed program and less than 1 MiB of free space show. On a full disk compilers
    crash, or report other errors."""
    folders = [directory, os.environ.get("TMPDIR") or "/tmp"]
    if re.search(NO_SPACE, output) or any(
            os.path.isdir(folder) and shutil.disk_usage(folder).free < 1 << 20
            for folder in folders):
        raise OSError(f"no space is left on a disk: free some (df -h {' '.join(folders)}), then "
                      "try again")


def build(directory: str, targets, output: list | None = None) -> int:
    """Returns ninja's exit status. The compiler's output is appended to `output`, or printed if
    that is None. Raises OSError if the build failed because a disk is full."""
    printed = [] if output is None else output

    def say(text: str):
        printed.append(text)
        if output is None:
            print(text, end="", flush=True)

    status = run_ninja(directory, targets, Line(output is None), say)
    if status != 0:
        require_space(directory, "".join(printed))
    return status


def run_ninja(directory: str, targets: list, line: Line, say) -> int:
    ninja = ["ninja", "-C", directory]
    environment = {**os.environ, "NINJA_STATUS": STATUS}
    # If a CMakeLists.txt has changed, CMake must run before the steps are known.
    configured = subprocess.run([*ninja, "build.ninja"], capture_output=True, text=True)
    if configured.returncode != 0:
        say(configured.stdout + configured.stderr)
        return told(configured.returncode, say)
    ninja += targets
    planned = subprocess.run([*ninja, "-n"], env=environment, capture_output=True, text=True)
    steps = re.findall(r"^\[\d+/\d+\] (.*)", planned.stdout, re.MULTILINE)
    if planned.returncode == 0 and not steps:
        return 0
    past = past_seconds(directory)
    left = sum(seconds_of(step, past) for step in steps) / (os.cpu_count() or 1)
    done = 0.0
    begun = time.monotonic()
    line.show(f"building {len(steps)}, about {left:.0f} s")
    with subprocess.Popen(ninja, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for text in process.stdout:
            found = re.match(r"\[(\d+)/(\d+)\] (.*)", text)
            if found:
                seconds = seconds_of(found[3], past) / (os.cpu_count() or 1)
                done += seconds
                left = max(left - seconds, 0)
                # Corrects the guess by the build's speed so far.
                pace = (time.monotonic() - begun + 20) / (done + 20)
                line.show(f"building {found[1]} of {found[2]}, about {left * pace:.0f} s left: "
                          f"{found[3].rsplit(' ', 1)[-1]}")
            elif not text.startswith("ninja: Entering directory"):
                line.clear()
                say(text)
    line.clear()
    if process.returncode == 0 and line.is_wanted:
        print(f"built {len(steps)} in {time.monotonic() - begun:.0f} s")
    return told(process.returncode, say)


def told(status: int, say) -> int:
    """The exit status of ninja. If a signal has ended it, says so: ninja could not."""
    if status < 0:
        name = signal.Signals(-status).name
        limit = " (see ulimit -f)" if name == "SIGXFSZ" else ""
        say(f"ninja was ended by {name}{limit}\n")
        return 128 - status
    return status
