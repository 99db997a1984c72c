"""What one learner has handed in: the answers, and what `check` has noted in commits."""

import os
import re
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import exercises
import foreign
import keep
from exercises import ROOT, CourseError
from foreign import Unreadable

ANSWER_LIMIT = 1000  # characters of the answer to a question


@dataclass
class Submission:
    """The answers of one learner."""

    texts: dict = field(default_factory=dict)  # of each file that there is
    faults: dict = field(default_factory=dict)  # why a file has no text
    solved: dict = field(default_factory=dict)  # the notes of an exercise's newest commit
    remark: str = ""

    def put(self, file: str, function, *arguments):
        """Keeps a file's text, or why there is none."""
        try:
            self.texts[file] = function(*arguments)
        except FileNotFoundError:
            pass
        except CourseError as error:
            self.faults[file] = str(error)

    def code(self, exercise: exercises.Exercise) -> str | None:
        """The answer between the exercise's marks, or None if there are none. Raises CourseError if
        that cannot be told."""
        if exercise.file in self.faults:
            raise Unreadable(self.faults[exercise.file])
        text = self.texts.get(exercise.file, "")
        return exercises.answer_in(exercise, text) if exercise.begins in text else None

    def seed(self) -> int:
        """The seed of the learner's questions."""
        return int(next((n["Seed"] for n in self.solved.values() if "Seed" in n), 0))

    def answer(self, number: str) -> str | None:
        """The answer to a question."""
        return self.solved.get(number, {}).get("Answer")

    def wrong_before(self, exercise: exercises.Exercise) -> list:
        """The numbers of the known wrong answers that were given before the right one."""
        noted = self.solved.get(exercise.id, {}).get("Wrong answers before", "")
        return sorted({int(n) for n in re.findall(r"\b\d{1,3}\b", noted)
                       if int(n) < len(exercise.wrong)})


def notes_in(log: str) -> dict:
    """The notes that `check` has left in commits, newest first."""
    solved = {}
    for number, notes in re.findall(r"^Solve ([\w.]+) .*\n\n((?:\w[\w ]*: .*\n)*)", log, re.M):
        found = {name: value[:ANSWER_LIMIT] for name, value in re.findall(r"(.*?): (.*)\n", notes)}
        if not re.fullmatch(r"[0-9]{1,9}", found.get("Seed", "0")):
            del found["Seed"]
        solved.setdefault(number, found)
    return solved


def own(files: set) -> Submission:
    """The answers in this repository."""
    log = ""
    if keep.is_repository():
        names = keep.git("for-each-ref", "--format=%(refname)").split()
        branch = next((name for name in names if foreign.BRANCH.fullmatch(name)), "")
        log = keep.git("log", "--format=%B", branch, "--") if branch else ""
    found = Submission(solved=notes_in(log + "\n"))
    for file in files:
        if (ROOT / file).exists():
            found.put(file, exercises.read, ROOT / file)
    return found


def read(folder: Path, files: set) -> Submission:
    """The answers in a learner's folder: in its git repository, or, if it is none, in its files.
    Raises Unreadable."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise Unreadable("it is not a folder")
    try:
        git = os.lstat(folder / ".git")
    except FileNotFoundError:
        if not foreign.entries_of(folder, "labs"):
            raise Unreadable("it is no git repository, and has no folder labs") from None
        found = Submission(remark="no git repository: only code is graded, as it is in the files")
        for file in files:
            found.put(file, read_file, folder, file)
        return found
    if not stat.S_ISDIR(git.st_mode):
        raise Unreadable("its .git is not a folder, as in a clone, but may name another one")
    with tempfile.TemporaryDirectory() as copy:
        commit = foreign.copy_repository(folder / ".git", Path(copy))
        if not commit:
            return Submission(remark=f"no branch '{keep.BRANCH}'")
        log = foreign.git_in(copy, "log", "--encoding=none", "--format=%B", commit, "--")
        found = Submission(solved=notes_in(log.decode(errors="replace") + "\n"))
        listed = foreign.git_in(copy, "ls-tree", "--full-tree", "-z", "-l", commit, "--",
                                *sorted(files))
        for entry in filter(None, listed.decode(errors="replace").split("\0")):
            about, _, file = entry.partition("\t")
            found.put(file, blob_of, copy, *about.split())
        return found


def read_file(folder: Path, file: str) -> str:
    return foreign.decoded(foreign.read_bytes(folder, file, foreign.FILE_LIMIT))


def blob_of(copy: str, mode: str, _, blob: str, size: str) -> str:
    """The text of a file in a commit, as `git ls-tree -l` describes it."""
    if mode not in ("100644", "100755"):
        raise Unreadable("it is not a regular file")
    if not size.isdigit():
        raise Unreadable("its text is missing: git clone, without --filter")
    if int(size) > foreign.FILE_LIMIT:
        raise Unreadable(f"it has more than {foreign.FILE_LIMIT} bytes")
    return foreign.decoded(foreign.git_in(copy, "cat-file", "blob", blob))
