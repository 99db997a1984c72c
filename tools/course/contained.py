"""Checks the code of strangers in a process of its own, with limits of time and memory, which no
process that it starts outlives.

If bubblewrap (bwrap) is installed, the programs that run an answer are in a box: every file is
read-only but those of the check's own temporary folder, and there are no network, no sockets of the
user's session, and no processes but their own. Without it they can do what the user can do; only
the limits hold.
"""

import ctypes
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from exercises import ROOT, CourseError

SECONDS = 300  # for one check; it takes about 3 s
MEMORY = 4 << 30  # bytes, of all its processes; pages that several share count for each. Right
# answers take up to 0.6 GiB.
FILES = 256 << 20  # bytes in each folder of the box that has its own files: they are in memory
PROCESSES = 1000
RESULT_LIMIT = 64 << 20  # bytes
PR_SET_CHILD_SUBREAPER = 36

box: list = []  # the beginning of each program's command line, in a process that call() has made


class Stopped(CourseError):
    """A function has exceeded a limit, or failed in a way that it does not know."""


def boxed(command: list) -> list:
    """The command, in the box if this process has one."""
    return [*box, *command]


def status_of(status: int) -> int:
    """A program's exit status as subprocess reports it: bwrap adds a signal's number to 128."""
    return 128 - status if box and status > 128 else status


def box_for(folder: str) -> list:
    """bwrap and its options, for programs that may write in this folder alone."""
    hidden = ["/tmp", "/var/tmp", "/run", os.environ.get("HOME", "/root")]  # sockets are there
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/",
             "--dev", "/dev", "--proc", "/proc"]
    for path in ("/dev/shm", *sorted({os.path.realpath(p) for p in hidden if os.path.isdir(p)})):
        if path != "/":
            words += ["--size", str(FILES), "--tmpfs", path]
    for path in sorted({str(ROOT), os.path.realpath(ROOT / "build")}):
        words += ["--ro-bind-try", path, path]
    return [*words, "--bind", folder, folder, "--setenv", "TMPDIR", "/tmp", "--chdir", str(ROOT)]


@functools.cache
def why_no_box() -> str:
    """Why programs cannot be put into a box here, or ""."""
    if not shutil.which("bwrap"):
        return "bubblewrap (bwrap) is not installed"
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run([*box_for(folder), "true"], capture_output=True, text=True,
                               errors="replace", check=False)
    return ended.stderr.strip().split("\n")[-1] if ended.returncode != 0 else ""


def call(function, seconds: float, runs_answer: bool = True, is_authors: bool = False):
    """What function() returns, as JSON has it, from a process of its own. Raises Stopped, or the
    function's CourseError. `runs_answer`: the programs that it starts by verdict.run() contain an
    answer, and are put into the box. `is_authors`: only time is limited, since the first check
    builds the libraries, with as many compilers as there are cores."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # or orphans would be init's
    spared = descendants()
    folder = tempfile.mkdtemp(prefix="symm-grade-")
    command = box_for(folder) if runs_answer and not why_no_box() else []
    try:
        with tempfile.TemporaryFile() as result:  # not in the folder, in which an answer may write
            child = os.fork()
            if child == 0:
                be_child(function, folder, command, result)
            try:
                why = watch(child, seconds, is_authors)
            finally:
                end_all(spared)
            result.seek(0)
            text = result.read(RESULT_LIMIT + 1)
    finally:
        remove(folder)
    if why:
        raise Stopped(f"It {why}, so it was stopped.")
    try:
        returned, refused, failed = json.loads(text)
    except (ValueError, TypeError):
        raise Stopped("It died before it had a result.") from None
    if failed:
        raise Stopped(f"It failed: {failed}")
    if refused:
        raise CourseError(refused)
    return returned


def be_child(function, folder: str, command: list, result):
    """Calls the function, writes what it returns into a file, and ends this process."""
    try:
        os.setsid()  # Ctrl-C ends the parent, which then ends this process
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first that a full machine ends
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        box[:] = command
        returned = refused = failed = None
        try:
            returned = function()
        except CourseError as error:
            refused = str(error)
        except BaseException as error:  # also SystemExit: what follows in the parent is not for it
            failed = f"{type(error).__name__}: {error}"
        result.write(json.dumps([returned, refused, failed]).encode())
        result.flush()
    finally:
        os._exit(0)


def watch(child: int, seconds: float, is_authors: bool) -> str:
    """Waits until the child ends. Returns "", or which limit it and its descendants exceeded."""
    end = time.monotonic() + seconds
    descriptor = os.pidfd_open(child)
    try:
        while not select.select([descriptor], [], [], 0.1)[0]:
            if time.monotonic() > end:
                return f"did not end within {seconds:.0f} s"
            processes = set() if is_authors else descendants()
            if len(processes) > PROCESSES:
                return f"had more than {PROCESSES} processes"
            if sum(map(resident, processes)) > MEMORY:
                return f"took more than {MEMORY / (1 << 30):g} GiB of memory"
    finally:
        os.close(descriptor)
    return ""


def resident(process: int) -> int:
    """The bytes of memory of a process, or 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def descendants() -> set:
    """The processes that this one has started, and those that these have, and so on."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_bytes()
            except OSError:
                continue
            parent = int(stat[stat.rindex(b")"):].split()[2])  # the name before it may have spaces
            children.setdefault(parent, []).append(int(entry))
    found, left = set(), [os.getpid()]
    while left:
        new = set(children.get(left.pop(), [])) - found
        found |= new
        left += new
    return found


def end_all(spared: set):
    """Ends all descendants but those spared. One that forks faster than it is found, which only
    the box prevents, is reported after 10 s, and the class goes on."""
    end = time.monotonic() + 10
    while left := descendants() - spared:
        if time.monotonic() > end:
            print(f"(processes of an answer cannot be ended: {sorted(left)}. Install bubblewrap.)",
                  file=sys.stderr, flush=True)
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):  # it is a child's, and orphaned soon
                pass
        time.sleep(0.005)


def remove(folder: str):
    """Removes a folder in which a stranger has written: deep ones, too, and those locked."""
    for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*command, "--", folder], stderr=subprocess.DEVNULL, check=False)
