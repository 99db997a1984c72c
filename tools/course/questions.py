"""Questions (kind `predict`): whether an answer is right, and what to say if it is not.

exercises.toml has the right answer sealed, so that a check builds and runs nothing, and nobody
reads the answer by accident. `./lab play` compares the seal with what the program prints. Only
answers that are measured on real GPUs have no seal."""

import re
import time
import zlib

import verdict
from exercises import CourseError, Exercise
from verdict import Verdict

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


def require_numbers(exercise: Exercise, given: str):
    """Raises CourseError if the answer has anything but whole numbers."""
    for part in parts_of(given):
        if not re.fullmatch("[0-9]+", part):
            several = SEVERAL if "commas" in exercise.task else ""
            raise CourseError(f"{NO_NUMBER.format(part=part, several=several)} "
                              f"./lab check {exercise.id} ANSWER")


def judge(course: list, exercise: Exercise, given: str) -> Verdict:
    """The verdict on the learner's answer to a question."""
    if exercise.within:
        return judge_number(course, exercise, number_of(given))
    require_numbers(exercise, given)
    seal = sealed(exercise, given)
    if [seal] == exercise.sealed:
        return Verdict(True, f"Right: {given}.")
    for number, wrong in enumerate(exercise.wrong):
        if parts_of(wrong.answer) == parts_of(given):
            return Verdict(False, wrong.say, wrong=number)
    say = of_answer(set(seal.split()), set(" ".join(exercise.sealed).split()))
    return Verdict(False, say.format(given=given))


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


def number_of(text: str) -> float:
    """370, 0.84 or 8M as a number."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)([KMG]?)", text.strip().upper())
    if not found:
        raise CourseError(f"'{text}' is not a number. Write it without a unit: 0.5, or 4M.")
    return float(found[1]) * 1024 ** " KMG".index(found[2] or " ")


def judge_number(course: list, exercise: Exercise, given: float) -> Verdict:
    """The verdict on a number that is measured, so that no answer is exact."""
    begun = time.monotonic()
    measured = verdict.answer_of(course, exercise)
    seconds = time.monotonic() - begun
    right = number_of(measured)

    def is_near(value: float) -> bool:
        return max(given, value) <= min(given, value) * (1 + exercise.within)

    if is_near(right):
        return Verdict(True, f"Right. Measured: {measured}.", seconds=seconds)
    for number, wrong in enumerate(exercise.wrong):
        if is_near(right * wrong.factor):
            return Verdict(False, wrong.say, wrong=number, seconds=seconds)
    return Verdict(False, f"No, it is {'more' if given < right else 'less'}.", seconds=seconds)
