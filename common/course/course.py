#!/usr/bin/env python3
"""The course: ./lab learn, start, check, watch, hint, solution, reset, skip."""

import argparse
import difflib
import json
import signal
import sys
import textwrap
import time
from pathlib import Path

import exercises
import verdict
from exercises import ROOT, CourseError, Exercise

STATE = ROOT / ".course"


class Progress:
    """How far the learner got: .course/progress.json, and what stood in the files before."""

    def __init__(self):
        self.file = STATE / "progress.json"
        try:
            self.data = json.loads(self.file.read_text())
        except FileNotFoundError:
            self.data = {"current": None, "state": {}, "hints": {}}

    def save(self):
        STATE.mkdir(exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.data, indent=1) + "\n")
        new.replace(self.file)

    def state(self, exercise: Exercise) -> str:
        return self.data["state"].get(exercise.id, "open")

    def set(self, exercise: Exercise, state: str):
        self.data["state"][exercise.id] = state
        self.save()

    @staticmethod
    def original(exercise: Exercise) -> Path:
        """Where the text is kept that `start` has taken out of the file."""
        return STATE / f"{exercise.id}.original"


def is_started(exercise: Exercise) -> bool:
    return bool(exercise.file) and Progress.original(exercise).exists()


def say(text: str):
    """Prints paragraphs, each at most 88 columns wide. Lines that are indented stay as they are."""
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.split("\n")
        if any(line.startswith((" ", "|", "-")) for line in lines):
            print(paragraph)
        else:
            print(textwrap.fill(" ".join(lines), 88))
        print()


def learn(course, progress, _):
    done = sum(progress.state(e) == "done" for e in course)
    others = sum(progress.state(e) != "done" and not verdict.has_gpus_for(e) for e in course)
    print(f"The course: {len(course) - others} exercises, {done} done." +
          (f" {others} more need GPUs." if others else "") + "\n")
    lab = ""
    for exercise in course:
        if exercise.lab != lab:
            lab = exercise.lab
            print(f"{lab}  (labs/{lab}/README.md)")
        state = progress.state(exercise)
        arrow = "->" if exercise.id == progress.data["current"] and state != "done" else "  "
        needs = f" (needs {exercise.gpus} GPUs)" if exercise.gpus else ""
        print(f" {arrow} {exercise.id}  {state:8} {exercise.kind:8} {exercise.title}{needs}")
    following = next_open(course, progress)
    print()
    if following is None:
        print("All done.")
    elif progress.state(following) == "begun":
        print(f"You are at {following.id}: ./lab check, ./lab hint")
    else:
        print(f"Next: ./lab start {following.id}")


def next_open(course, progress):
    """The one that is begun, or the first open one behind it, or the first open one of all. None
    that needs more GPUs than there are."""
    at = next((i for i, e in enumerate(course) if e.id == progress.data["current"]), 0)
    in_turn = course[at:] + course[:at]
    return next((e for e in in_turn if progress.state(e) in ("open", "begun") and
                 verdict.has_gpus_for(e)), None)


def start(course, progress, args):
    exercise = chosen(course, progress, args, start_next=True)
    verdict.require_gpus_for(exercise)
    if is_started(exercise):
        print(f"{exercise.id} is begun already; what you wrote stays as it is. To begin it anew: "
              f"./lab reset {exercise.id}, then ./lab start {exercise.id}\n")
    elif exercise.file:
        text = exercise.path.read_text()
        original = exercises.split(exercise, text)[1]
        stub = exercises.stub_of(exercise, original)
        STATE.mkdir(exist_ok=True)
        Progress.original(exercise).write_text(original)
        exercise.path.write_text(exercises.with_answer(exercise, text, stub))
    progress.data["current"] = exercise.id
    progress.set(exercise, "begun")
    print(f"{exercise.id} {exercise.title} ({exercise.kind})\n")
    say(exercise.task)
    if exercise.file:
        before = exercises.split(exercise, exercise.path.read_text())[0]
        print(f"Where:  {exercise.file}:{before.count(chr(10)) + 2}")
    if exercise.follow:
        print(f"Follow: {exercise.follow}")
    if exercise.words:
        print(f"Words:  {', '.join(exercise.words)} (docs/GLOSSARY.md)")
    print(f"Then:   ./lab check{' ANSWER' if exercise.kind == 'predict' else ''}, or ./lab hint")


def check(course, progress, args):
    if args.all:
        return check_all(course, progress)
    exercise = chosen(course, progress, args)
    verdict.require_gpus_for(exercise)
    if exercise.kind == "predict":
        given = args.answer
        if given is None:
            if not sys.stdin.isatty():
                raise CourseError(f"say your answer: ./lab check {exercise.id} ANSWER")
            given = input("Your answer: ")
        found = verdict.judge_answer(exercise, given)
    else:
        if not is_started(exercise):
            raise CourseError(f"{exercise.id} is not begun: ./lab start {exercise.id}")
        found = verdict.judge(exercise)
    return tell(course, progress, exercise, found)


def tell(course, progress, exercise, found):
    print(f"{exercise.id} {exercise.title}: {'done' if found.passed else 'not yet'} "
          f"({found.seconds:.0f} s)\n")
    say(found.say)
    if found.output and not found.passed:
        print(textwrap.indent(found.output, "    | "), "\n")
    if not found.passed:
        print("./lab hint helps.")
        return 1
    progress.set(exercise, "done")
    following = next_open(course, progress)
    print(f"Next: ./lab start {following.id}" if following else "That was the last one.")
    return 0


def check_all(course, progress):
    wrong = 0
    for exercise in course:
        state = progress.state(exercise)
        if is_started(exercise):
            found = verdict.judge(exercise)
            state = "right" if found.passed else f"wrong: {found.say}"
            wrong += not found.passed
        print(f"{exercise.id}  {exercise.title}: {state}", flush=True)
    return 1 if wrong else 0


def watch(course, progress, args):
    exercise = chosen(course, progress, args)
    if not exercise.file:
        raise CourseError(f"{exercise.id} asks a question: ./lab check ANSWER")
    seen = None
    while True:
        now = exercise.path.stat().st_mtime_ns
        if now != seen:
            seen = now
            print("\n" + "-" * 88)
            if check(course, progress, argparse.Namespace(id=exercise.id, all=False)) == 0:
                return 0
            print(f"Waiting for the next save of {exercise.file} (Ctrl-C ends)", flush=True)
        time.sleep(0.3)


def hint(course, progress, args):
    exercise = chosen(course, progress, args)
    shown = min(progress.data["hints"].get(exercise.id, 0) + 1, len(exercise.hints))
    progress.data["hints"][exercise.id] = shown
    progress.save()
    say(f"Hint {shown} of {len(exercise.hints)}: {exercise.hints[shown - 1].strip()}")
    print("./lab hint shows the next one." if shown < len(exercise.hints) else
          "That was the last hint. ./lab solution shows the solution.")


def solution(course, progress, args):
    exercise = chosen(course, progress, args)
    if not exercise.file:
        print(f"The answer is {verdict.answer_of(exercise)}.")
        return
    text = exercise.path.read_text()
    if not is_started(exercise):
        print(exercises.split(exercise, text)[1], end="")
        return
    mine = exercises.split(exercise, text)[1].splitlines(keepends=True)[1:-1]
    theirs = Progress.original(exercise).read_text()
    print("".join(difflib.unified_diff(mine, theirs.splitlines(keepends=True), "yours",
                                       "solution", n=20)) or "Yours is the solution.\n", end="")


def reset(course, progress, args):
    exercise = chosen(course, progress, args)
    put_back(exercise)
    progress.data["hints"].pop(exercise.id, None)
    progress.set(exercise, "open")
    where = f", and {exercise.file} is as it was" if exercise.file else ""
    print(f"{exercise.id} is open again{where}.")


def put_back(exercise):
    """What stood in the file before `start`. A learner's answer is kept in .course."""
    if not is_started(exercise):
        return
    original = Progress.original(exercise)
    text = exercise.path.read_text()
    kept = STATE / f"{exercise.id}.yours"
    try:
        kept.write_text(exercises.split(exercise, text)[1])
        exercise.path.write_text(exercises.without_answer(exercise, text, original.read_text()))
    except CourseError as error:
        raise CourseError(f"{error} The solution is in {original.relative_to(ROOT)}; "
                          f"`git diff {exercise.file}` shows what else changed.") from None
    original.unlink()


def skip(course, progress, args):
    exercise = chosen(course, progress, args)
    put_back(exercise)
    progress.set(exercise, "skipped")
    following = next_open(course, progress)
    then = f" Next: ./lab start {following.id}" if following else ""
    print(f"{exercise.id} is skipped.{then}")


def chosen(course, progress, args, start_next=False) -> Exercise:
    """The exercise that was named, or the one that the learner is at."""
    wanted = args.id or (None if start_next else progress.data["current"])
    if wanted is None:
        following = next_open(course, progress) if start_next else None
        if following is None:
            raise CourseError("say which exercise: ./lab learn lists them.")
        return following
    for exercise in course:
        if exercise.id == wanted:
            return exercise
    raise CourseError(f"there is no exercise '{wanted}': ./lab learn lists them.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for function, text in (
            (learn, "every exercise, and what is next"),
            (start, "put an exercise's stub in place and say what to do; without ID the next one"),
            (check, "build and test it, and say what is still wrong"),
            (watch, "check at every save"), (hint, "one more hint"),
            (solution, "what your answer has differently"),
            (reset, "put back what was there before `start`"),
            (skip, "leave it out")):
        command = commands.add_parser(function.__name__, help=text, description=text)
        command.set_defaults(run=function)
        if function is not learn:
            command.add_argument("id", nargs="?", metavar="ID", help="05.2; else the current one")
        if function is check:
            command.add_argument("answer", nargs="?", help="to an exercise that asks a question")
            command.add_argument("--all", action="store_true", help="every exercise that is begun")
    args = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ./lab learn | head
    try:
        course = exercises.load()
        progress = Progress()
        ids = {e.id for e in course}
        current = next((e for e in course if e.id == progress.data["current"]), None)
        answers = (args.command == "check" and current and current.kind == "predict" and
                   args.answer is None)
        if getattr(args, "id", None) and f"0{args.id}" in ids and not (answers and current.within):
            args.id = f"0{args.id}"  # 1.1 for 01.1
        if answers and args.id and args.id not in ids:
            args.id, args.answer = None, args.id  # ./lab check ANSWER
        return args.run(course, progress, args) or 0
    except CourseError as error:
        print(f"./lab: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print()
        return 130


if __name__ == "__main__":
    sys.exit(main())
