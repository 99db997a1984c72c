#!/usr/bin/env python3
"""The sources that a check builds, in build/course_tree: the learner's files, with the solution in
the place of every exercise but the one that is checked. So an answer that is begun elsewhere can
spoil no verdict."""

import sys
from pathlib import Path

import exercises
from exercises import ROOT, CourseError, Exercise

TREE = ROOT / "build" / "course_tree"
PARTS = ("CMakeLists.txt", "CMakePresets.json", "cmake", "common", "labs")
STATE = ROOT / ".course"


def original(exercise: Exercise) -> Path:
    """Where the text is kept that `start` has taken out of the file."""
    return STATE / f"{exercise.id}.original"


def is_started(exercise: Exercise) -> bool:
    return bool(exercise.file) and original(exercise).exists()


def solved(exercise: Exercise, text: str) -> str:
    """The file's text with the solution in the place of the exercise. The lines behind keep their
    numbers for the compiler."""
    if exercise.begins not in text:
        return text
    before, answer, behind = exercises.split(exercise, text)
    next_line = (before + answer).count("\n") + 1
    return before + original(exercise).read_text() + f"#line {next_line}\n" + behind


def update(course: list, checked: Exercise | None, answer: str | None = None):
    """Brings the tree up to date for a check of `checked`: of what stands in the learner's file, or
    of `answer`. Only what differs is written, so that only that is built."""
    begun = {}
    for exercise in course:
        if is_started(exercise):
            begun.setdefault(exercise.path, []).append(exercise)
    wanted = set()
    for part in PARTS:
        root = ROOT / part
        for source in [root] if root.is_file() else root.rglob("*"):
            if source.is_dir() or "__pycache__" in source.parts:
                continue
            data = source.read_bytes()
            others = [e for e in begun.get(source, []) if checked is None or e.id != checked.id]
            is_answered = answer is not None and source == checked.path
            if others or is_answered:
                text = data.decode()
                if is_answered:
                    text = exercises.with_answer(checked, text, answer)
                for other in sorted(others, key=lambda e: -text.find(e.begins)):  # from the end
                    text = solved(other, text)
                data = text.encode()
            copy = TREE / source.relative_to(ROOT)
            wanted.add(copy)
            if not copy.exists() or copy.read_bytes() != data:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(data)
                copy.chmod(source.stat().st_mode)
    for copy in TREE.rglob("*"):
        if copy.is_file() and copy not in wanted:
            copy.unlink()


if __name__ == "__main__":  # ./lab makes the tree before CMake first sees it
    try:
        update(exercises.load(), None)
    except CourseError as error:
        sys.exit(f"./lab: {error}")
