"""Questions (kind `predict`): whether an answer is right, and what to say if it is not."""

import re
import time

import verdict
from answers import of_answer, parts_of, require_numbers, sealed
from exercises import CourseError, Exercise
from verdict import Verdict


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
