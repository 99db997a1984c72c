"""A class for tests of ./lab grade. An answer is a shell script here, which is run as the program
of a real one is: nothing is compiled. `./lab play bad` compiles some."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1)).resolve()
FILE = "labs/01_vmm_alloc/device_buffer.cpp"  # of 01.1
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
    f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
TEMPORARY = tempfile.TemporaryDirectory()
ROOT = Path(TEMPORARY.name) / "grader"
for part in ("tools", "labs/01_vmm_alloc", "labs/02_access"):  # two labs are enough
    shutil.copytree(REPOSITORY / part, ROOT / part, ignore=shutil.ignore_patterns("__pycache__"))
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools/course"), str(ROOT / "tools/lab")]

import class_points  # noqa: E402
import contained  # noqa: E402
import exercises  # noqa: E402
import questions  # noqa: E402
import verdict  # noqa: E402

RIGHT = "echo right"


def judge(_, exercise, answer):
    """Runs the answer as a shell script, or takes the solution for right."""
    script = re.search("// sh: (.*)", answer)
    if not script:
        return verdict.Verdict("symm::missing(" not in answer, "", wrong=0)
    ended = verdict.run(["sh", "-c", script[1]], 20)
    return verdict.Verdict(ended.status == 0 and "right\n" in ended.output, ended.output, wrong=1)


verdict.judge = judge
verdict.prepare = lambda: None
questions.judge = lambda _, exercise, given: verdict.Verdict(given == "4", "", wrong=0)


def source(script: str) -> str:
    """The file of 01.1 with an answer."""
    exercise = next(e for e in exercises.load() if e.id == "01.1")
    text = exercises.read(ROOT / exercise.file)
    return exercises.with_answer(exercise, text, f"    // sh: {script}\n")


def processes(mark: str) -> list:
    """The processes with a mark in their environment."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()[0]
            if mark.encode() in Path(f"/proc/{entry}/environ").read_bytes() and state != b"Z":
                found.append(int(entry))
    return sorted(set(found) - {os.getpid()})


def state_of(*folders: Path) -> dict:
    """What all files of these folders are."""
    return {path: (os.lstat(path).st_mode, os.lstat(path).st_size, os.lstat(path).st_mtime_ns)
            for folder in folders for top, folders, files in os.walk(folder)
            for path in (Path(top) / name for name in folders + files) if path.name != "build"
            and path != ROOT / "build/course.lock"}


def rows_of(learners: list) -> dict:
    """The points of each learner, or why there are none."""
    return {learner["name"]: learner.get("cannot_be_graded", learner["points"])
            for learner in learners}


class HostileClass(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "class"
        self.folder.mkdir()
        self.outside = Path(folder.name) / "outside"
        self.outside.mkdir()
        self.mark = f"SYMM_TEST_MARK={folder.name}"
        os.environ["SYMM_TEST_MARK"] = folder.name

    def git(self, name: str, *arguments, text: bytes = b"") -> str:
        return subprocess.run(["git", "-C", self.folder / name, *arguments], input=text, check=True,
                              env=ENVIRONMENT, capture_output=True).stdout.decode().strip()

    def hand_in(self, name: str, script: str = RIGHT, answer: str = "4", notes: str = "",
                about: str = "100644") -> Path:
        """Makes a learner's repository: an answer to 01.1 and to the question 01.6."""
        folder = self.folder / name
        (folder / "labs").mkdir(parents=True)
        self.git(name, "init", "-q")
        blob = self.git(name, "hash-object", "-w", "--stdin", text=source(script).encode())
        self.commit(name, f"{about},{blob}", f"Answer: {answer}\n{notes}")
        return folder

    def commit(self, name: str, mode_and_blob: str, notes: str):
        self.git(name, "update-index", "--add", "--cacheinfo", f"{mode_and_blob},{FILE}")
        commit = self.git(name, "commit-tree", self.git(name, "write-tree"), "-F", "-",
                          text=f"Solve 01.6 What a gigabyte takes\n\n{notes}".encode())
        self.git(name, "update-ref", "refs/heads/course", commit)

    def printed(self, as_json: bool, folder: Path | None = None) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(
                io.StringIO()) as self.errors:
            class_points.grade(folder or self.folder, as_json)
        return output.getvalue()

    def graded(self, folder: Path | None = None) -> dict:
        return json.loads(self.printed(True, folder))

    def rows(self, folder: Path | None = None) -> dict:
        return rows_of(self.graded(folder)["learners"])

    def without_box(self):
        before = contained.why_no_box
        contained.why_no_box = lambda: "the test wants none"
        self.addCleanup(setattr, contained, "why_no_box", before)
