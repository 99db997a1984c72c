"""./lab grade: points for the answers in this repository, or in each one in a folder. Whatever a
learner has handed in, it makes one row, and changes no other."""

import dataclasses
import os
import stat
import sys
import time
from pathlib import Path

import class_report
import contained
import exercises
import likeness
import questions
import submission
import verdict
from check_tree import solution_of
from class_report import POINTS, Learner, printable
from exercises import ROOT, CourseError, Exercise
from submission import Submission

LEARNER_SECONDS = 3600  # for all checks of a learner: 79 exercises take about 5 minutes
READ_SECONDS = 120


def answer_to(exercise: Exercise, answers: Submission) -> str | None:
    """The answer to an exercise, or None if there is none. Raises CourseError."""
    if not exercise.file:
        return answers.solved.get(exercise.id, {}).get("Answer")
    answer = answers.code(exercise)
    return None if answer == exercises.stub_of(exercise, solution_of(exercise)) else answer


def check(course: list, exercise: Exercise, answer: str) -> dict:
    """The state of an answer, and what is wrong with it."""
    found = (verdict.judge if exercise.file else questions.judge)(course, exercise, answer)
    row = {"state": "waste" if found.is_waste else "right" if found.passed else "wrong"}
    return row | ({} if row["state"] == "right" else {"wrong": found.wrong, "say": found.say})


def judge(course: list, exercise: Exercise, answers: Submission, run=check) -> dict:
    """One exercise's row: the state, the points, and what is wrong."""
    row = {"state": "open", "points": 0, "wrong_before": answers.wrong_before(exercise)}
    try:
        answer = answer_to(exercise, answers)
        if answer is not None:
            row |= run(course, exercise, answer)
    except contained.Stopped as error:
        row |= {"state": "unchecked", "say": str(error)}
    except CourseError as error:
        row |= {"state": "wrong", "wrong": -1, "say": str(error)}
    if row["state"] in ("right", "waste"):
        row["points"] = POINTS[exercise.kind]
    return row


def course_for(seed: int) -> list:
    return [e for e in exercises.load(seed=seed) if verdict.has_gpus_for(e)]


def read_all(folder: Path) -> list:
    """A learner for each entry of a folder, unless it is a file or hidden. All are read before any
    is checked, so that no check can change another learner's answers."""
    learners = []
    files = {e.file for e in exercises.load() if e.file}
    for name in sorted(os.listdir(folder)):
        if name.startswith(".") or stat.S_ISREG((folder / name).lstat().st_mode):
            continue
        learner = Learner(printable(name))
        learners.append(learner)
        try:
            learner.answers = Submission(**contained.call(
                lambda name=name: dataclasses.asdict(submission.read(folder / name, files)),
                READ_SECONDS, runs_answer=False))
            learner.seed = learner.answers.seed()
            learner.course = course_for(learner.seed)
        except CourseError as error:
            learner.why = printable(str(error))[:200]
    if not any(learner.course for learner in learners):
        raise CourseError(f"{folder} has no folder that can be graded" + "".join(
            f"\n{learner.name}: {learner.why}" for learner in learners[:5]))
    return learners


def has_answered(learner: Learner, exercise: Exercise) -> bool:
    try:
        return answer_to(exercise, learner.answers) is not None
    except CourseError:
        return False


def check_solutions(learners: list):
    """Checks the author's answers to all exercises that somebody has answered. So all libraries are
    built before a limit of time counts, and no answer fails because of this machine."""
    course = course_for(0)
    answered = [e for e in course if e.file and any(has_answered(learner, e)
                                                    for learner in learners)]
    if answered:
        verdict.prepare()  # in this process, since sudo may ask for a password
    for exercise in answered:
        found = contained.call(lambda e=exercise: check(course, e, solution_of(e)),
                               LEARNER_SECONDS, is_authors=True)
        if found["state"] == "wrong":
            raise CourseError(f"the author's answer to {exercise.id} does not pass here, so "
                              f"nothing is graded. ./lab play {exercise.id} shows more. "
                              f"{found['say']}")


def grade_one(learner: Learner):
    """Checks all answers of a learner, each for itself, within the limits."""
    end = time.monotonic() + LEARNER_SECONDS

    def run(course: list, exercise: Exercise, answer: str) -> dict:
        seconds = min(contained.SECONDS, end - time.monotonic())
        if seconds <= 0:
            raise contained.Stopped(f"The checks before it took {LEARNER_SECONDS} s.")
        row = contained.call(lambda: check(course, exercise, answer), seconds,
                             runs_answer=bool(exercise.file))
        if exercise.file:
            solution = solution_of(exercise)
            text = exercises.read(exercise.path)
            shape = likeness.shape(exercise, answer, text)
            row["contains"] = likeness.contained_words(answer, solution)
            row["like_the_author"] = likeness.are_alike(
                shape, likeness.shape(exercise, solution, text))
            learner.shapes[exercise.id] = shape
        return row

    for exercise in learner.course:
        learner.rows[exercise.id] = judge(learner.course, exercise, learner.answers, run)


def grade(folder: Path | None, as_json: bool) -> int:
    """Prints the points of each repository in the folder, or of this one."""
    return grade_own(as_json) if folder is None else grade_class(folder, as_json)


def grade_own(as_json: bool) -> int:
    answers = submission.own({e.file for e in exercises.load() if e.file})
    seed = exercises.default_seed()
    course = course_for(seed)
    learner = Learner(ROOT.name, seed, course, answers)
    for exercise in course:
        row = learner.rows[exercise.id] = judge(course, exercise, answers)
        if not as_json:
            print(f"{exercise.id:5}  {row['points']}/{POINTS[exercise.kind]}  "
                  f"{row['state']:5}  {exercise.title}", flush=True)
    return class_report.end(course, [learner], as_json, is_class=False)


def grade_class(folder: Path, as_json: bool) -> int:
    if contained.why_no_box():
        print(f"({contained.why_no_box()}: the answers' programs can read and write whatever you "
              "can.)", file=sys.stderr, flush=True)
    learners = read_all(folder)
    check_solutions(learners)
    for learner in learners:
        grade_one(learner)
        if not as_json:
            class_report.print_row(learner)
    return class_report.end(course_for(0), learners, as_json, is_class=True)
