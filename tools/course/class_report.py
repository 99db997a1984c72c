"""What `./lab grade` prints: rows, wrong answers of a class, and what a lecturer may look at."""

import collections
import dataclasses
import json

import likeness
from submission import Submission

POINTS = {"predict": 1, "fix": 2, "write": 3}


@dataclasses.dataclass
class Learner:
    """One row."""

    name: str
    seed: int = 0
    course: list = dataclasses.field(default_factory=list)  # with the values of the learner's seed
    answers: Submission = dataclasses.field(default_factory=Submission)
    why: str = ""  # it cannot be graded
    rows: dict = dataclasses.field(default_factory=dict)  # of each exercise
    shapes: dict = dataclasses.field(default_factory=dict)  # of the answers, for likeness

    @property
    def points(self) -> int:
        return sum(row["points"] for row in self.rows.values())


def printable(text: str) -> str:
    """The text without what a terminal obeys: a name with a line feed would forge a row."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def remarks_on(learner: Learner) -> list:
    """What a lecturer may want to look at in one learner's row."""
    found = collections.defaultdict(list)
    for number, row in learner.rows.items():
        for kind in row.get("contains", []):
            found[f"contains {kind}"].append(number)
        if row.get("like_the_author"):
            found["like the author's"].append(number)
        if row["state"] == "unchecked":
            found["not checked"].append(number)
    return [*filter(None, [learner.answers.remark]),
            *(f"{what}: {', '.join(numbers)}" for what, numbers in found.items())]


def print_row(learner: Learner):
    if learner.why:
        print(f"   -  {learner.name}  cannot be graded: {learner.why}", flush=True)
    else:
        print(f"{learner.points:4}  {learner.name}", flush=True)
    for remark in remarks_on(learner):
        print(f"        {remark}", flush=True)


def described(learner: Learner) -> dict:
    """A learner as JSON has it."""
    if learner.why:
        return {"name": learner.name, "points": 0, "cannot_be_graded": learner.why}
    return {"name": learner.name, "seed": learner.seed, "points": learner.points,
            "exercises": learner.rows, "remarks": remarks_on(learner)}


def of_class(course: list, learners: list) -> dict:
    """For each exercise: how many have which state, which wrong answers they gave, and the pairs of
    learners whose answers look alike."""
    counts = {}
    for exercise in course:
        rows = [learner.rows[exercise.id] for learner in learners if not learner.why]
        shapes = {number: learner.shapes.get(exercise.id, frozenset())
                  for number, learner in enumerate(learners)}
        counts[exercise.id] = {
            "states": collections.Counter(row["state"] for row in rows),
            "wrong_answers": collections.Counter(
                number for row in rows for number in {
                    *row["wrong_before"], row.get("wrong", -1)} - {-1}),
            "alike": [[learners[one].name, learners[other].name]
                      for one, other in likeness.pairs(shapes)]}
    return counts


def end(course: list, learners: list, as_json: bool, is_class: bool) -> int:
    """Prints the rest. Returns the exit status: 0 if all have all points."""
    most = sum(POINTS[e.kind] for e in course)
    counts = of_class(course, learners)
    if as_json:
        print(json.dumps({"most_points": most, "learners": [*map(described, learners)],
                          "class": counts}, indent=1))
    elif not is_class:
        print(f"\nTotal: {learners[0].points}/{most}")
    else:
        print(f"of {most} points.")
        print_class(course, counts)
    return 0 if all(learner.points == most for learner in learners) else 1


def print_class(course: list, counts: dict):
    alike = [f"{number:5}  {one} and {other}" for number, count in counts.items()
             for one, other in count["alike"]]
    if alike:
        print("Answers that look alike:", *alike, sep="\n")
    print("The wrong answers that were given most:")
    wrong = collections.Counter({(e.id, number): count for e in course
                                 for number, count in counts[e.id]["wrong_answers"].items()})
    says = {e.id: [wrong.say for wrong in e.wrong] for e in course}
    for (number, which), count in wrong.most_common(10):
        print(f"{count:4}  {number}  {says[number][which][:80]}")
