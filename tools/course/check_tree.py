"""Copies of the learner's files that are built in their place, since these have stubs and answers
that may be wrong.

build/course_tree, for a check: with the solution of every exercise but the one that is checked.
build/solved, for use: with the answers that `check` has accepted, and the solutions of all other
exercises. ./lab runs its other commands there while an exercise is begun.
"""

import contextlib
import fcntl
import re
from pathlib import Path

import exercises
import keep
import tool
from exercises import ROOT, CourseError, Exercise

TREE = ROOT / "build" / "course_tree"
PARTS = ("CMakeLists.txt", "CMakePresets.json", "cmake", "common", "labs", "symm", "tools")
SOLVED = ROOT / "build" / "solved"
ALL_PARTS = (*PARTS, ".ci", ".clang-format", ".clang-tidy", ".clangd", ".gitattributes", ".github",
             ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "README.md",
             "docs", "lab", "pyproject.toml")
STATE = ROOT / ".course"
MARK = re.compile(r"// exercise [0-9A-Z]+\.[0-9].*")  # also of an #include, see with_answer()


def original(exercise: Exercise) -> Path:
    """The file that keeps the text that `start` has taken out."""
    return STATE / f"{exercise.id}.original"


def accepted(exercise: Exercise) -> Path:
    """The file that keeps the last answer that `check` has accepted."""
    return STATE / f"{exercise.id}.accepted"


def is_started(exercise: Exercise) -> bool:
    return bool(exercise.file) and original(exercise).exists()


def solution_of(exercise: Exercise) -> str:
    """The author's code: what `start` has taken out, or what is in the file."""
    if is_started(exercise):
        return exercises.read(original(exercise))
    return exercises.split(exercise, exercises.read(exercise.path))[1]


def has_answer(exercise: Exercise) -> bool:
    """Whether the exercise's file has an answer of the learner's. `start` puts a stub in the place
    of each open exercise of a lab, so most of them are started, and have none."""
    if not is_started(exercise):
        return False
    text = exercises.read(exercise.path)
    return (exercise.begins not in text or exercises.answer_in(exercise, text) !=
            exercises.stub_of(exercise, exercises.read(original(exercise))))


def require_begun(exercise: Exercise):
    """Raises CourseError if the exercise is not begun, or its marks are lost."""
    if not is_started(exercise):
        raise CourseError(f"{exercise.id} is not begun: ./lab start {exercise.id}")
    text = exercises.read(exercise.path)
    if exercise.begins not in text and exercise.ends not in text:
        raise CourseError(
            f"{exercise.file} has neither of the two lines '{exercise.begins}' and "
            f"'{exercise.ends}'. " +
            (f"Your answer is on another branch: git switch {keep.BRANCH}" if keep.is_elsewhere()
             else "Write them again around your answer."))


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
            (path.name in ALL_PARTS or not path.name.startswith((".", "#"))) and
            not path.name.endswith(("~", ".swp", ".new")))


def solved(exercise: Exercise, text: str) -> str:
    """The file's text with the solution in place of the exercise. The lines after it keep their
    numbers for the compiler."""
    if exercise.begins not in text:
        return text
    before, answer, behind = exercises.split(exercise, text)
    next_line = (before + answer).count("\n") + 1
    return before + exercises.read(original(exercise)) + f"#line {next_line}\n" + behind


def without_marks(exercise: Exercise, text: str) -> str:
    """The file's text for use: with the learner's answer, if `check` has accepted it, else with the
    solution."""
    solution = exercises.read(original(exercise))
    if exercise.begins not in text and exercise.ends not in text:
        if not keep.is_elsewhere() and exercises.split(exercise, text)[1] != solution:
            require_begun(exercise)
        return text
    answer = exercises.answer_in(exercise, text)
    if accepted(exercise).exists() and answer == exercises.read(accepted(exercise)):
        solution = answer
    return exercises.without_answer(exercise, text, solution)


def update(course: list, checked: Exercise | None, answer: str | None = None):
    """Brings the tree up to date for a check of `checked`: of the answer in the learner's file, or
    of `answer`."""
    texts = {} if answer is None else {
        checked.path: exercises.with_answer(checked, exercises.read(checked.path), answer)}
    others = {}
    for exercise in course:
        if is_started(exercise) and (checked is None or exercise.id != checked.id):
            others.setdefault(exercise.path, []).append(exercise)
    for path, begun in others.items():
        text = texts.get(path) or exercises.read(path)
        for exercise in sorted(begun, key=lambda e: -text.find(e.begins)):  # from the end
            text = solved(exercise, text)
        texts[path] = text
    bring_up_to_date(TREE, PARTS, texts)


def solve(course: list, command: str) -> bool:
    """Brings build/solved up to date. Returns false if no file of the learner's needs it."""
    texts = {}
    for exercise in course:
        if is_started(exercise):
            text = texts.get(exercise.path) or exercises.read(exercise.path)
            texts[exercise.path] = without_marks(exercise, text)
    texts = {path: text for path, text in texts.items() if text != exercises.read(path)}
    for path in {e.path for e in course if e.file and e.path.exists()}:
        mark = MARK.search(texts.get(path) or exercises.read(path))
        if mark:
            raise CourseError(f"{path.relative_to(ROOT)} has '{mark[0]}', but no exercise of it is "
                              "begun there: remove the line, or restore the file with git.")
    if texts and command == "docs":  # its checks are for the labs' own lines, of a known length
        labs = sorted({e.group for e in course if is_started(e) and e.path in texts})
        raise CourseError("the reference is made of files without exercises: " +
                          "`git switch main`, or " * bool(keep.branch()) +
                          f"./lab reset {', ./lab reset '.join(labs)}")
    if texts:
        bring_up_to_date(SOLVED, ALL_PARTS, texts)
        bin_folder = ROOT / "build" / "bin"  # where pages find the programs
        bin_folder.unlink(missing_ok=True)
        bin_folder.symlink_to("solved/build/bin")
    return bool(texts)


def bring_up_to_date(tree: Path, parts: tuple, texts: dict):
    """Makes the tree a copy of these parts of the repository, with other texts in some files. Only
    files that differ are written, so that only these are built."""
    wanted = {}
    for part in parts:
        root = ROOT / part
        for source in [root] if root.is_file() else root.rglob("*"):
            if not is_source(source):
                continue
            try:
                data, mode = source.read_bytes(), source.stat().st_mode
            except FileNotFoundError:  # an editor's file, already gone
                continue
            if source in texts:
                data = texts[source].encode()
            wanted[tree / source.relative_to(ROOT)] = (data, mode)
    tree.mkdir(parents=True, exist_ok=True)
    kept = [top for top in tree.iterdir() if top.name != "build"]
    found = [*kept, *(copy for top in kept for copy in top.rglob("*"))]
    for copy in sorted(found, reverse=True):  # a folder's files before the folder
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


def make(command: str) -> bool:
    """Makes the first tree, before CMake sees it (course), or the second for this command of ./lab.
    Returns false if no file needs it. Raises tool.Failure if the command is refused."""
    try:
        course = exercises.load()
        recover(course)
        with alone():
            if command != "course":
                return solve(course, command)
            update(course, None)
            return True
    except CourseError as error:  # whose status is that of the course's own commands
        raise tool.Failure(str(error)) from None
