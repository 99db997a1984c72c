#!/usr/bin/env python3
"""The sources that a check builds, in build/course_tree: the learner's files, with the solution in
place of every exercise but the one that is checked. So an unfinished answer to another exercise
cannot spoil the verdict."""

import contextlib
import fcntl
import sys
from pathlib import Path

import exercises
import keep
import tool
from exercises import ROOT, CourseError, Exercise

TREE = ROOT / "build" / "course_tree"
PARTS = ("CMakeLists.txt", "CMakePresets.json", "cmake", "common", "labs", "symm")
STATE = ROOT / ".course"


def original(exercise: Exercise) -> Path:
    """The file that keeps the text that `start` has taken out."""
    return STATE / f"{exercise.id}.original"


def is_started(exercise: Exercise) -> bool:
    return bool(exercise.file) and original(exercise).exists()


def has_answer(exercise: Exercise) -> bool:
    """Whether the exercise's file has an answer of the learner's. `start` puts a stub in the place
    of each open exercise of a lab, so most of them are started, and have none."""
    if not is_started(exercise):
        return False
    text = exercises.read(exercise.path)
    return (exercise.begins not in text or exercises.answer_in(exercise, text) !=
            exercises.stub_of(exercise, exercises.read(original(exercise))))


def recover(course: list):
    """If a file has an exercise's marks but .course lacks the original text (in a clone, or because
    .course was removed), gets that text from git."""
    for exercise in course:
        if exercise.file and not is_started(exercise) and exercise.path.exists() and (
                exercise.begins in exercises.read(exercise.path)):
            try:
                before = keep.text_before(exercise)
                if exercise.begins in before:
                    raise keep.GitError("it was begun before")
            except keep.GitError as error:
                raise CourseError(
                    f"{exercise.file} has the marks of exercise {exercise.id}, but neither .course "
                    f"nor git has the original text ({error}). Restore the file from the branch "
                    "that you cloned.") from None
            exercises.write(original(exercise), exercises.split(exercise, before)[1])


@contextlib.contextmanager
def alone():
    """One check at a time: they share the tree."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "course.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_source(path: Path) -> bool:
    """Whether it is a source, not a file that an editor left behind."""
    return (path.is_file() and "__pycache__" not in path.parts and
            not path.name.startswith((".", "#")) and not path.name.endswith(("~", ".swp", ".new")))


def solved(exercise: Exercise, text: str) -> str:
    """The file's text with the solution in place of the exercise. The lines after it keep their
    numbers for the compiler."""
    if exercise.begins not in text:
        return text
    before, answer, behind = exercises.split(exercise, text)
    next_line = (before + answer).count("\n") + 1
    return before + exercises.read(original(exercise)) + f"#line {next_line}\n" + behind


def update(course: list, checked: Exercise | None, answer: str | None = None,
           with_answers: bool = False):
    """Brings the tree up to date for a check of `checked`: of the answer in the learner's file, or
    of `answer`. Or for a run of a program, with all answers of the learner's. Only files that
    differ are written, so that only these are built."""
    begun = {}
    for exercise in course:
        if is_started(exercise) and not (with_answers and has_answer(exercise)):
            begun.setdefault(exercise.path, []).append(exercise)
    wanted = {}
    for part in PARTS:
        root = ROOT / part
        for source in [root] if root.is_file() else root.rglob("*"):
            if not is_source(source):
                continue
            try:
                data, mode = source.read_bytes(), source.stat().st_mode
            except FileNotFoundError:  # an editor's file, already gone
                continue
            others = [e for e in begun.get(source, []) if checked is None or e.id != checked.id]
            is_answered = answer is not None and source == checked.path
            if others or is_answered:
                text = exercises.read(source)
                if is_answered:
                    text = exercises.with_answer(checked, text, answer)
                for other in sorted(others, key=lambda e: -text.find(e.begins)):  # from the end
                    text = solved(other, text)
                data = text.encode()
            wanted[TREE / source.relative_to(ROOT)] = (data, mode)
    for copy in sorted(TREE.rglob("*"), reverse=True):  # a folder's files before the folder
        if copy.is_dir():
            if not any(copy.iterdir()):
                copy.rmdir()
        elif copy not in wanted:
            copy.unlink()
    for copy, (data, mode) in wanted.items():
        if not copy.exists() or copy.read_bytes() != data:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            copy.chmod(mode)


def main():
    try:
        course = exercises.load()
        recover(course)
        with alone():
            update(course, None)
    except (CourseError, OSError) as error:
        sys.exit(f"./lab: {error}")


if __name__ == "__main__":  # ./lab makes the tree before CMake first sees it
    tool.run(main)
