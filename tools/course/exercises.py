"""The exercises of all labs, as their exercises.toml describe them, and the sources they change.

An exercise is a part of a lab's own file. The solution is what stands there; stubs and wrong
answers are made from it, so there is nothing to keep in step.
"""

import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit("./lab: the course needs Python 3.11 or newer")

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools/lab"), str(ROOT / "tools/explore/player")]
import tool  # noqa: E402


class CourseError(tool.Failure):
    """Something that the learner has to know. The message is a whole sentence."""

    status = 2


class TooFewGpus(CourseError):
    """The exercise cannot be done on this machine."""

    status = 1  # as for a wrong answer


@dataclass
class Wrong:
    """A wrong answer, what it shows, and what a teacher would say about it."""

    shows: str = ""  # a regular expression that the test's output matches
    say: str = ""  # empty: that of the wrong answer before
    change: list = field(default_factory=list)  # [old, new] pairs that make it from the solution
    text: str = ""  # or the whole answer
    answer: str = ""  # of a question: the wrong answer itself
    factor: float = 0  # of a question for a measured number: how many times the right one it is
    has: str = ""  # a regular expression for code that passes all tests and is wrong all the same
    is_waste: bool = False  # it is right, but wasteful, or not what the task wanted
    told: int = -1  # the number of the wrong answer whose `say` this is: its own, or one before


@dataclass
class Exercise:
    """One exercise. The fields are those of exercises.toml, see tools/course/README.md."""

    id: str
    title: str
    kind: str  # write, fix or predict
    task: str
    words: list
    hints: list
    lab: str  # the folder of its exercises.toml: "01_vmm_alloc", "bugs_that_shipped"
    target: str = ""  # the program to build; empty: it is only explored
    read: str = ""  # the page and its section to read first
    minutes: int = 15  # that it takes
    why: str = ""  # printed when it is done
    filter: str = "*"  # of GoogleTest
    explore: list = field(default_factory=list)  # the explorer's program and its protocols
    file: str = ""
    function: str = ""
    lines: list = field(default_factory=list)
    follow: str = ""
    stub: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    command: list = field(default_factory=list)  # of a question: the target's arguments
    answer: str = ""  # a regular expression: its group is the answer in what the command prints
    count: str = ""  # or one whose matches are counted
    sealed: list = field(default_factory=list)  # or it, by answers.py: one for each of `vary`
    vary: dict = field(default_factory=dict)  # {name} in texts and environment is one of these
    gpus: int = 0  # the command needs at least this many real GPUs
    within: float = 0  # a number 0.3 times larger than the answer is right, or the other way round
    environment: dict = field(default_factory=dict)
    score: str = ""  # what `./lab score` counts, in words
    best: int = 0  # of an open task: the least that is known, of the hall's answer or the author's
    measure: list = field(default_factory=list)  # what `./lab bench` gets, instead of a count
    score_of: str = ""  # without `explore`: the tests that count, or whose driver calls count
    seconds: int = 60

    @property
    def path(self) -> Path:
        return ROOT / self.file

    @property
    def hall(self) -> Path:
        """Where the best known answer is, if it is not the author's: `// NAME`, then the answer."""
        return ROOT / f"labs/{self.lab}/hall/{self.id}.txt"

    @property
    def group(self) -> str:
        """The part of its number before the dot: "05", or "B"."""
        return self.id.split(".")[0]

    @property
    def begins(self) -> str:
        return f"// exercise {self.id} begins"

    @property
    def ends(self) -> str:
        return f"// exercise {self.id} ends"


def read(path: Path) -> str:
    """A file's text, with its line endings unchanged."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise CourseError(f"There is no file {path.relative_to(ROOT)}: `git restore` brings it "
                          "back.") from None
    except UnicodeDecodeError as error:
        raise CourseError(f"{path.relative_to(ROOT)} is not UTF-8: {error}.") from None


def write(path: Path, text: str):
    """Replaces a file as a whole, or not at all."""
    path = path.resolve()
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(path.name + ".new")
    try:
        with open(new, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def default_seed() -> int:
    """The number that chooses the values of questions: SYMM_COURSE_SEED, or 0."""
    given = os.environ.get("SYMM_COURSE_SEED", "0")
    if not given.isdigit():
        raise CourseError(f"SYMM_COURSE_SEED={given} is not a whole number")
    return int(given)


def varied(exercise: Exercise, number: int):
    """Chooses the values that vary. A question's known wrong answers belong to the first ones."""
    if exercise.sealed:
        exercise.sealed = [exercise.sealed[number % len(exercise.sealed)]]
    for name, values in exercise.vary.items():
        value = values[number % len(values)]

        def put(text: str, name=name, value=value) -> str:
            return text.replace(f"{{{name}}}", value)

        exercise.task = put(exercise.task)
        exercise.hints = [put(hint) for hint in exercise.hints]
        exercise.command = [put(word) for word in exercise.command]
        exercise.environment = {k: put(v) for k, v in exercise.environment.items()}
        if value != values[0] and not exercise.file:
            exercise.wrong = []


def load(root: Path = ROOT, seed: int | None = None) -> list[Exercise]:
    """All exercises in their order, with the values of questions that belong to the seed."""
    found = []
    for page in sorted(root.glob("labs/**/exercises.toml")):
        try:
            entries = tomllib.loads(page.read_text())["exercise"]
        except tomllib.TOMLDecodeError as error:
            raise CourseError(f"{page.relative_to(root)} cannot be read: {error}. `git diff` shows "
                              "what changed.") from None
        for entry in entries:
            try:
                entry["wrong"] = [Wrong(**wrong) for wrong in entry.get("wrong", [])]
                found.append(Exercise(lab=str(page.parent.relative_to(root / "labs")), **entry))
                found[-1].read = os.path.normpath(
                    f"labs/{found[-1].lab}/{found[-1].read or 'README.md, Background'}")
                varied(found[-1], default_seed() if seed is None else seed)
                for number, wrong in enumerate(found[-1].wrong):
                    wrong.told = number if wrong.say else found[-1].wrong[number - 1].told
            except TypeError as error:
                raise CourseError(f"{page}, exercise {entry.get('id')}: {error}") from None
    return found


def find_region(exercise: Exercise, text: str) -> tuple[int, int]:
    """The first line of the exercise and the line after its last, counted from 0."""
    lines = text.splitlines()
    marks = [i for i, line in enumerate(lines) if exercise.begins in line or exercise.ends in line]
    if [exercise.begins in lines[i] for i in marks] == [True, False]:
        return marks[0], marks[1] + 1
    if marks:
        raise CourseError(f"{exercise.file} must have '{exercise.begins}' once, and after it "
                          f"'{exercise.ends}' once: your answer goes between the two lines.")
    first = exercise.function or exercise.lines[0]
    at = [i for i, line in enumerate(lines) if first in line]
    if len(at) != 1:
        raise CourseError(f"{exercise.file} has {len(at)} lines '{first}' instead of one, so "
                          f"exercise {exercise.id} has no place. `git diff` shows what changed.")
    begin = at[0]
    if exercise.lines:
        last = exercise.lines[1].count("\n") + 1
        for i in range(begin, len(lines)):
            if exercise.lines[1] in "\n".join(lines[i:i + last]):
                return begin, i + last
    else:
        indent = re.match(r" *", lines[begin])[0]
        while begin < len(lines) and not lines[begin].rstrip().endswith("{"):
            begin += 1
        for i in range(begin + 1, len(lines)):
            if lines[i].startswith(indent + "}"):
                return begin + 1, i
    raise CourseError(f"{exercise.file}: the end of exercise {exercise.id} was not found.")


def split(exercise: Exercise, text: str) -> tuple[str, str, str]:
    """The text before the exercise, in it, and after it."""
    begin, end = find_region(exercise, text)
    lines = text.splitlines(keepends=True)
    return "".join(lines[:begin]), "".join(lines[begin:end]), "".join(lines[end:])


def changed(solution: str, changes: list) -> str:
    """The solution with each `[old, new]` replaced. `old` must occur exactly once."""
    for old, new in changes:
        if solution.count(old) != 1:
            raise CourseError(f"'{old}' occurs {solution.count(old)} times in the solution, "
                              "not once.")
        solution = solution.replace(old, new)
    return solution


def stub_of(exercise: Exercise, solution: str) -> str:
    """The learner's first text: the faulty version, or a call that names what is missing."""
    if exercise.stub:
        return changed(solution, exercise.stub)
    indent = re.match(r" *", solution)[0]
    return f'{indent}symm::missing("{exercise.id}", "{exercise.follow}");\n'


def with_answer(exercise: Exercise, text: str, answer: str) -> str:
    """The file's text with `answer` in the place of the exercise, between its two marks."""
    before, old, behind = split(exercise, text)
    indent = re.match(r" *", old)[0]
    include = f'#include "common/course/missing.hpp"  // exercise {exercise.id}\n'
    if "symm::missing(" in answer and include not in before:
        at = before.index("#include")
        before = before[:at] + include + before[at:]
    return (before + f"{indent}{exercise.begins}: {exercise.title}\n" + answer +
            f"{indent}{exercise.ends}\n" + behind)


def answer_in(exercise: Exercise, text: str) -> str:
    """The text between the two marks."""
    return "".join(split(exercise, text)[1].splitlines(keepends=True)[1:-1])


def without_answer(exercise: Exercise, text: str, original: str) -> str:
    """The file's text as it was before `start`: with `original`, and without the marks."""
    before, _, behind = split(exercise, text)
    lines = [line for line in before.splitlines(keepends=True)
             if not line.rstrip().endswith(f"missing.hpp\"  // exercise {exercise.id}")]
    return "".join(lines) + original + behind
