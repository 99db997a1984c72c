"""./lab skip LAB --if-known: three questions, made from the lab's wrong answers."""

import difflib
import os
import random
from dataclasses import dataclass

import check_tree
import exercises
from exercises import Exercise

QUESTIONS = 3
CHOICES = 3


@dataclass
class Question:
    """A change of a right answer, and what may be wrong with it."""

    exercise: Exercise
    change: list  # lines of a diff
    choices: list
    right: int  # the number of the true one, from 1


def ask_about(exercise: Exercise, chance: random.Random) -> Question | None:
    """A question about one of the exercise's wrong answers. None if they do not make one."""
    stories = {wrong.told: exercise.wrong[wrong.told].say for wrong in exercise.wrong}
    changed = [wrong for wrong in exercise.wrong if wrong.change and not wrong.is_waste]
    if not changed or len(stories) < CHOICES:
        return None
    wrong = chance.choice(changed)
    others = [told for told in stories if told != wrong.told]
    told = [wrong.told, *chance.sample(others, CHOICES - 1)]
    chance.shuffle(told)
    solution = check_tree.solution_of(exercise)
    lines = difflib.unified_diff(solution.splitlines(),
                                 exercises.changed(solution, wrong.change).splitlines(), n=3)
    return Question(exercise, [line for line in list(lines)[2:] if not line.startswith("@@")],
                    [stories[number] for number in told], told.index(wrong.told) + 1)


def questions(of_lab: list) -> list:
    """Questions about different exercises."""
    seed = os.environ.get("SYMM_COURSE_SEED")
    chance = random.Random(seed and exercises.default_seed())
    found = list(filter(None, (ask_about(e, chance) for e in of_lab if e.file)))
    return chance.sample(found, min(QUESTIONS, len(found)))
