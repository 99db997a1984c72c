"""./lab grade: points for the answers in one repository, or in each repository of a folder."""

import collections
import json
import re
import subprocess
from pathlib import Path

import check_tree
import exercises
import keep
import verdict
from exercises import ROOT, CourseError, Exercise

POINTS = {"predict": 1, "fix": 2, "write": 3}


class Answers:
    """What a learner has written, in a repository of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        names = self.git("branch", "--all", "--format=%(refname:short)").split()
        self.branch = next((n for n in names if n.split("/")[-1] == keep.BRANCH), "")
        log = self.git("log", "--format=%B", self.branch) if self.branch else ""
        self.solved = {}  # the notes of its newest commit, for each exercise
        for number, notes in re.findall(r"^Solve ([\w.]+) .*\n\n((?:\w[\w ]*: .*\n)*)", log, re.M):
            self.solved.setdefault(number, dict(re.findall(r"(.*): (.*)\n", notes)))

    def git(self, *arguments: str) -> str:
        ended = subprocess.run(["git", "-C", str(self.folder), *arguments], capture_output=True,
                               check=False, env=keep.environment())
        return ended.stdout.decode(errors="replace") if ended.returncode == 0 else ""

    def code(self, exercise: Exercise) -> str | None:
        """The answer to an exercise, or None if its stub is there still, or no exercise is."""
        path = self.folder / exercise.file
        text = (self.git("show", f"{self.branch}:{exercise.file}")
                if self.branch and self.folder != ROOT else
                exercises.read(path) if path.exists() else "")
        if exercise.begins not in text:
            return None
        answer = exercises.answer_in(exercise, text)
        return None if answer == exercises.stub_of(exercise, solution_of(exercise)) else answer

    def has_done(self, exercise: Exercise) -> bool:
        """Whether .course says so, which no clone has."""
        try:
            progress = json.loads((self.folder / ".course/progress.json").read_text())
            return progress["state"].get(exercise.id) == "done"
        except (OSError, ValueError, KeyError):
            return False

    def seed(self) -> int:
        """The seed of its questions."""
        if self.folder == ROOT:
            return exercises.default_seed()
        return int(next((n["Seed"] for n in self.solved.values() if "Seed" in n), 0))

    def wrong_before(self, exercise: Exercise) -> list:
        """The numbers of the known wrong answers that were given before the right one."""
        numbers = self.solved.get(exercise.id, {}).get("Wrong answers before", "")
        return [int(number) for number in re.findall(r"\d+", numbers)]


def solution_of(exercise: Exercise) -> str:
    if check_tree.is_started(exercise):
        return exercises.read(check_tree.original(exercise))
    return exercises.split(exercise, exercises.read(exercise.path))[1]


def judge(course: list, exercise: Exercise, answers: Answers) -> dict:
    """One row: the state, the points, and what is wrong."""
    try:
        if exercise.file:
            answer = answers.code(exercise)
            found = None if answer is None else verdict.judge(course, exercise, answer)
        else:
            answer = answers.solved.get(exercise.id, {}).get("Answer")
            found = None if answer is None else verdict.judge_answer(course, exercise, answer)
    except CourseError as error:
        found = verdict.Verdict(False, str(error))
    if not exercise.file and found is None and answers.has_done(exercise):
        found = verdict.Verdict(True, "")
    row = {"state": "open", "points": 0, "wrong_before": answers.wrong_before(exercise)}
    if found:
        row["state"] = "waste" if found.is_waste else "right" if found.passed else "wrong"
        row["points"] = POINTS[exercise.kind] if found.passed else 0
        if found.is_waste or not found.passed:
            row |= {"wrong": found.wrong, "say": found.say}
    return row


def of_class(course: list, rows: list) -> dict:
    """For each exercise: how many have which state, and which wrong answers they gave."""
    return {exercise.id: {
        "states": collections.Counter(row[exercise.id]["state"] for row in rows),
        "wrong_answers": collections.Counter(
            number for row in rows for number in {
                *row[exercise.id]["wrong_before"], row[exercise.id].get("wrong", -1)} - {-1}),
    } for exercise in course}


def grade(folder: Path | None, as_json: bool) -> int:
    """Prints the points of each repository in the folder, or of this one."""
    repositories = [ROOT] if folder is None else sorted(
        path for path in folder.iterdir() if (path / "labs").is_dir())
    if not repositories:
        raise CourseError(f"{folder} has no folder with a copy of the course")
    course, learners = [], []
    for repository in repositories:
        answers = Answers(repository)
        course = [e for e in exercises.load(seed=answers.seed()) if verdict.has_gpus_for(e)]
        rows = {}
        for exercise in course:
            row = rows[exercise.id] = judge(course, exercise, answers)
            if folder is None and not as_json:
                print(f"{exercise.id:5}  {row['points']}/{POINTS[exercise.kind]}  "
                      f"{row['state']:5}  {exercise.title}", flush=True)
        learners.append({"name": repository.name, "seed": answers.seed(), "exercises": rows,
                         "points": sum(row["points"] for row in rows.values())})
        if folder is not None and not as_json:
            print(f"{learners[-1]['points']:4}  {repository.name}", flush=True)
    most = sum(POINTS[e.kind] for e in course)
    counts = of_class(course, [learner["exercises"] for learner in learners])
    if as_json:
        print(json.dumps({"most_points": most, "learners": learners, "class": counts}, indent=1))
    elif folder is None:
        print(f"\nTotal: {learners[0]['points']}/{most}")
    else:
        print(f"of {most} points. The wrong answers that were given most:")
        for (number, wrong), count in collections.Counter(
                {(e.id, w): n for e in course
                 for w, n in counts[e.id]["wrong_answers"].items()}).most_common(10):
            exercise = next(e for e in course if e.id == number)
            print(f"{count:4}  {number}  {exercise.wrong[wrong].say[:80]}")
    return 0 if all(learner["points"] == most for learner in learners) else 1
