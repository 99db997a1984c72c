"""Answers to questions (kind `predict`), and the seals of the right ones in exercises.toml: so that
a check builds and runs nothing, and nobody reads an answer by accident. `./lab play` compares each
seal with what the program prints. Only answers that are measured on real GPUs have none."""

import re
import zlib
from pathlib import Path

from exercises import CourseError, Exercise

EXECUTIONS = Path(__file__).parents[2] / "labs/05_device_prims/explore/values.cpp"
NO_NUMBER = "'{part}' is not a whole number: this question asks for one{several}."
SEVERAL = " or several, with commas between"
# Of a wrong answer for which the question has no verdict.
NOT_IT = "No, it is not {given}."
MISSING = "No: what you name belongs to the answer, but something is missing."
TOO_MANY = "No: the answer is among what you name, but something does not belong to it."
BOTH = "No: something is missing, and something that you name does not belong to the answer."


def parts_of(answer: str) -> list:
    """The values of an answer that may be a list, in any order."""
    return sorted(set(re.split(r"[\s,]+", answer.strip())))


def sealed(exercise: Exercise, answer: str) -> str:
    """A checksum for each value of the answer. Nothing could hide small numbers from a reader who
    tries them, so it only has to be unreadable."""
    return " ".join(sorted(f"{zlib.crc32(f'{exercise.id} {part}'.encode()):08x}"
                           for part in parts_of(answer)))


def of_answer(named: set, wanted: set) -> str:
    """A sentence about a wrong answer for which the question has no verdict, by its values."""
    if len(wanted) == 1:
        return NOT_IT
    return MISSING if named < wanted else TOO_MANY if named > wanted else BOTH


def opened(exercise: Exercise) -> list:
    """The values of the right answer, found by trying numbers."""
    seals = exercise.sealed[0].split()
    return [value for value in map(str, range(1000)) if sealed(exercise, value) in seals]


def is_explored(exercise: Exercise) -> bool:
    """Whether the question is what a load may return, and executions show each answer."""
    return f'{{"{exercise.id}", ' in EXECUTIONS.read_text()


def proof(exercise: Exercise, given: str) -> str:
    """Where to see that an answer about what a load may return is wrong; empty for other
    questions."""
    if not is_explored(exercise):
        return ""
    named, wanted = parts_of(given), opened(exercise)
    missing = [value for value in wanted if value not in named]
    if missing:
        return (f"In this execution the answer is {missing[0]}: "
                f"./lab explore {exercise.id}/{missing[0]} --step")
    extra = next(value for value in named if value not in wanted)
    return (f"No execution has the answer {extra}: ./lab explore {exercise.id}/{extra} runs all "
            "of them.")


def require_numbers(exercise: Exercise, given: str):
    """Raises CourseError if the answer has anything but whole numbers."""
    for part in parts_of(given):
        if not re.fullmatch("[0-9]+", part):
            several = SEVERAL if "commas" in exercise.task else ""
            raise CourseError(f"{NO_NUMBER.format(part=part, several=several)} "
                              f"./lab check {exercise.id} ANSWER")


def imported(course: list, words: list) -> list:
    """The exercises and answers in a text of the site's: `05.9=20,30 05.10=...`. Refuses the text
    as a whole (CourseError) if a part of it is none."""
    of_site = {e.id: e for e in course if e.sealed}
    found = {}
    for word in words:
        number, _, answer = word.partition("=")
        if number not in of_site or not answer:
            raise CourseError(f"'{word}' answers no question of the site, so nothing is recorded. "
                              "Copy the whole line that the site shows.")
        require_numbers(of_site[number], answer)
        found[number] = answer
    if not found:
        raise CourseError("pass the answers that the site shows: ./lab import 05.9=20,30")
    return [(of_site[number], answer) for number, answer in found.items()]
