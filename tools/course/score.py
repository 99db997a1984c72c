"""./lab score: what right answers cost. It is counted on emulated GPUs and in the explorer's
executions, so it is the same on every machine."""

import json
import re
import tempfile
from pathlib import Path

import check_tree
import exercises
import verdict
from exercises import CourseError, Exercise


def count(exercise: Exercise) -> int:
    """What the answer that was built last costs: accesses over links in the first execution of each
    protocol, or what its tests have counted, else the driver calls of these."""
    if exercise.explore:
        program, *protocols = exercise.explore
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "rows.json"
            verdict.run([str(verdict.BUILD / "bin" / program), *protocols, "--executions=1",
                         f"--json={report}"], exercise.seconds)
            rows = [json.loads(row) for row in report.read_text().splitlines()]
        return sum(row["over_links"] for row in rows if not row["may_give_up"])
    ended = verdict.run([str(verdict.program_of(exercise)), f"--gtest_filter={exercise.score_of}"],
                        exercise.seconds, {**verdict.environment_of(exercise),
                                           "SYMM_EMU_COUNT": "1"})
    if ended.status != 0:
        raise CourseError(f"{exercise.id}: {exercise.score_of} fails:\n{ended.output}")
    counted = (re.findall(r"^score: (\d+)", ended.output, re.M) or
               re.findall(r"^driver calls: (\d+)", ended.output, re.M))
    return sum(map(int, counted))


def score_of(course: list, exercise: Exercise, answer: str) -> int | None:
    """What an answer costs, or None if it is not right."""
    if not verdict.judge(course, exercise, answer).passed:
        return None
    with check_tree.alone():
        return count(exercise)


def show(course: list, number: str | None):
    """Prints what the author's answers cost, and the learner's."""
    scored = [e for e in course if e.score and number in (None, e.id)]
    if not scored:
        raise CourseError("these exercises have a score: " +
                          ", ".join(e.id for e in course if e.score))
    print("Less is better. An answer counts if it passes ./lab check.\n\n"
          f"{'':6}{'counted':60} {'author':>6} {'yours':>6}")
    for exercise in scored:
        text = exercises.read(exercise.path)
        counted = score_of(course, exercise, check_tree.solution_of(exercise))
        authors = "fails" if counted is None else str(counted)
        yours = "-"
        if check_tree.has_answer(exercise):
            counted = score_of(course, exercise, exercises.answer_in(exercise, text))
            yours = "wrong" if counted is None else str(counted)
        print(f"{exercise.id:6}{exercise.score:60} {authors:>6} {yours:>6}", flush=True)
