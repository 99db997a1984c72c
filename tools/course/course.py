"""The course: ./lab learn, start, check, watch, hint, solution, reset, skip, update, grade."""

import argparse
import difflib
import functools
import json
import subprocess
import sys
import textwrap
import time

import answers
import check_tree
import class_points as grading
import editors
import exercises
import keep
import known
import newer
import questions
import score as scoring
import terminal
import tool
import verdict
from check_tree import STATE, is_started, original, require_begun
from exercises import ROOT, CourseError, Exercise

MOST_LINES = 12  # of a test's output: a failing execution has so many


class Progress:
    """How far the learner has got: .course/progress.json."""

    def __init__(self):
        self.file = STATE / "progress.json"
        self.load()

    def load(self):
        """Reads it again: another command, above all `watch`, may have changed it."""
        self.data = {"current": None, "state": {}, "hints": {}, "wrong": {}, "best": {}}
        try:
            self.data.update(json.loads(self.file.read_text()))
        except FileNotFoundError:
            pass
        except (ValueError, TypeError):
            self.data = {}
        if not (isinstance(self.data.get("current"), str | None) and
                all(isinstance(self.data.get(part), dict) and
                    all(isinstance(value, kind) for value in self.data[part].values())
                    for part, kind in (("state", str), ("hints", int), ("wrong", list),
                                       ("best", dict)))):
            raise CourseError(f"{self.file} is damaged: delete it. Your answers stay, and "
                              "./lab check counts them again.")

    def save(self):
        exercises.write(self.file, json.dumps(self.data, indent=1) + "\n")

    def state(self, exercise: Exercise) -> str:
        return self.data["state"].get(exercise.id, "open")

    def set(self, exercise: Exercise, state: str, is_current: bool = False):
        self.load()
        self.data["state"][exercise.id] = state
        if is_current:
            self.data["current"] = exercise.id
        self.save()

    def has_done_current(self) -> bool:
        return self.data["state"].get(self.data["current"]) == "done"

    def move_on(self, exercise: Exercise):
        """The course goes on after this exercise, unless the learner is at work on another."""
        if self.data["state"].get(self.data["current"]) != "begun":
            self.data["current"] = exercise.id
            self.save()


def colored(text: str, color: int) -> str:
    """The text as a terminal shows it: 31 is red, 32 green."""
    return f"\033[1;{color}m{text}\033[0m" if sys.stdout.isatty() else text


def say(text: str):
    """Prints paragraphs, at most 88 columns wide. One with indented lines stays as it is."""
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.split("\n")
        if any(line.startswith((" ", "|", "-")) for line in lines):
            print(paragraph)
        else:
            print(textwrap.fill(" ".join(lines), 88))
        print()


def possible(course, progress) -> list:
    """The exercises that this machine has the GPUs for."""
    return [e for e in course if progress.state(e) == "done" or verdict.has_gpus_for(e)]


def share(course, progress) -> str:
    done = sum(progress.state(e) == "done" for e in course)
    return f"{done} of {len(course)} done"


def learn(course, progress, args):
    here = possible(course, progress)
    others = len(course) - len(here)
    print(f"The course: {share(here, progress)}." +
          (f" {others} more need GPUs." if others else "") + "\n")
    lab = ""
    wanted = (args.word or "").lower()
    for exercise in course:
        if wanted not in " ".join((exercise.id, exercise.title, exercise.kind, exercise.file,
                                   exercise.task, *exercise.words)).lower():
            continue
        if exercise.lab != lab:
            lab = exercise.lab
            of_lab = [e for e in here if e.lab == lab]
            print(f"{lab}  {share(of_lab, progress)}  (labs/{lab}/README.md)")
        state = progress.state(exercise)
        is_here = exercise.id == progress.data["current"] and state in ("open", "begun")
        arrow = "->" if is_here else "  "
        needs = f" (needs {exercise.gpus} GPUs)" if exercise.gpus else ""
        shown = colored(f"{state:8}", 32) if state == "done" else f"{state:8}"
        print(f" {arrow} {exercise.id:5}  {shown} {exercise.kind:8} {exercise.title}{needs}")
    following = next_open(course, progress)
    if not lab:
        print(f"No exercise matches '{wanted}'.")
    print()
    if following is None:
        print("All done.")
    elif progress.state(following) == "begun":
        print(f"You are at {following.id}: ./lab check, ./lab hint")
    else:
        print(f"Next: ./lab start {following.id}")


def next_open(course, progress, after: Exercise | None = None):
    """The first exercise that is begun or open from the current one on, or from `after` on; then
    from the course's first on. Leaves out those that need more GPUs than there are."""
    last = after.id if after else progress.data["current"]
    at = next((i for i, e in enumerate(course) if e.id == last), 0)
    in_turn = course[at:] + course[:at]
    return next((e for e in in_turn if progress.state(e) in ("open", "begun") and
                 verdict.has_gpus_for(e)), None)


def start(course, progress, args):
    exercise = chosen(course, progress, args, start_next=True)
    verdict.require_gpus_for(exercise)
    keep.require_branch()
    if is_started(exercise):
        require_begun(exercise)
        if check_tree.has_answer(exercise):
            state = "done" if progress.state(exercise) == "done" else "already begun"
            print(f"{exercise.id} is {state}, and your code is unchanged. To start over: "
                  f"./lab reset {exercise.id}, then ./lab start {exercise.id}\n")
    with_stubs = [e for e in course if e.file and (
        e.lab == exercise.lab and progress.state(e) == "open" or
        e is exercise and progress.state(e) != "done")]
    if not all(map(is_started, with_stubs)):
        keep.require_place()
    put_stubs(with_stubs)
    progress.set(exercise, "done" if progress.state(exercise) == "done" else "begun", True)
    print(f"Read:   {exercise.read}\n")
    print(f"{exercise.id} {exercise.title} ({exercise.kind}, about {exercise.minutes} minutes)\n")
    say(exercise.task)
    place = None
    if exercise.file:
        place = place_of(exercise)
        print(f"Where:  {place}")
    if exercise.follow:
        print(f"Follow: {exercise.follow}")
    if exercise.words:
        print(f"Words:  {', '.join(exercise.words)} (docs/GLOSSARY.md)")
    print(f"Then:   ./lab check{' ANSWER' if exercise.kind == 'predict' else ''}, or ./lab hint")
    if place:
        write_commands()
    if place and not args.no_open:
        editors.open_at(place)


def put_stubs(open_exercises):
    """Puts the stubs of all these exercises into their files: else the file of one would show the
    solution of another. Those that an earlier, killed `start` has put there are committed now."""
    for exercise in open_exercises:
        if not is_started(exercise):
            text = exercises.read(exercise.path)
            solution_text = exercises.split(exercise, text)[1]
            stub = exercises.stub_of(exercise, solution_text)
            exercises.write(original(exercise), solution_text)
            exercises.write(exercise.path, exercises.with_answer(exercise, text, stub))
    keep.commit("Begin", [(e, begun_by(e)) for e in open_exercises])


def begun_by(exercise):
    """What `start` does to a text of the exercise's file."""
    stub = exercises.stub_of(exercise, exercises.read(original(exercise)))
    return lambda text: (text if exercise.begins in text else
                         exercises.with_answer(exercise, text, stub))


def place_of(exercise) -> str:
    """The first line of the answer, as FILE:LINE."""
    before = exercises.split(exercise, exercises.read(exercise.path))[0]
    return f"{exercise.file}:{before.count(chr(10)) + 2}"


def write_commands():
    """Writes the compile commands of all files, for clangd. Without clang there are none."""
    try:
        subprocess.run(["./lab", "commands"], cwd=ROOT, check=False)
    except OSError:
        pass


def check(course, progress, args):
    if args.all:
        if args.id is not None:
            raise CourseError(f"unexpected word '{args.id}': check --all takes none")
        return check_all(course, progress)
    exercise = chosen(course, progress, args)
    verdict.require_gpus_for(exercise)
    if exercise.kind == "predict":
        if not args.answer:
            if not sys.stdin.isatty():
                raise CourseError(f"pass your answer: ./lab check {exercise.id} ANSWER")
            args.answer = input("Your answer: ").split()
        given = " ".join(args.answer)
        found = questions.judge(course, exercise, given)
        if not found.passed and exercise.sealed:
            found.say = " ".join([found.say, answers.proof(exercise, given)]).strip()
    else:
        if args.answer:
            raise CourseError(f"unexpected word '{args.answer[0]}': {exercise.id} is no question, "
                              "so ./lab check takes no answer")
        require_begun(exercise)
        found = verdict.judge(course, exercise)
    return tell(course, progress, exercise, found, args)


def show_solution(exercise):
    """Shows the author's version beside the learner's, if the difference is short. That of an open
    task would end the contest."""
    if not exercise.file or exercise.best:
        return
    lines = difference(exercise)
    if 0 < len(lines) <= 24:
        print("The author's version (+), beside yours (-):")
        print("".join("  " + line for line in lines))
    elif lines:
        print("./lab solution shows the author's version beside yours.\n")


def difference(exercise) -> list:
    mine = exercises.answer_in(exercise, exercises.read(exercise.path)).splitlines(keepends=True)
    theirs = exercises.read(original(exercise)).splitlines(keepends=True)
    return list(difflib.unified_diff(mine, theirs, "yours", "solution", n=20))[2:]


def notes_of(progress, exercise, found, answer: list) -> str:
    """What `grade` reads in the commit of an exercise that is solved."""
    wrong = sorted({*progress.data["wrong"].get(exercise.id, []),
                    *([found.wrong] if found.is_waste else [])})
    return ("\n\n" + (f"Answer: {' '.join(answer)}\n" if answer else "") +
            (f"Seed: {exercises.default_seed()}\n" if exercise.vary else "") +
            (f"Wrong answers before: {', '.join(map(str, wrong))}\n" if wrong else ""))


def record(progress, exercise, found, answer: list):
    """Keeps that the exercise is done, or which wrong answer was given. `answer` is to a question,
    else empty."""
    progress.load()
    if not found.passed:
        if found.wrong >= 0:
            told = progress.data["wrong"].setdefault(exercise.id, [])
            told += [found.wrong] * (found.wrong not in told)
            progress.save()
        return
    notes = notes_of(progress, exercise, found, answer)
    if progress.state(exercise) != "done" and not exercise.file:
        keep.note(exercise, notes)
    elif progress.state(exercise) != "done":
        mine = exercises.answer_in(exercise, exercises.read(exercise.path))
        keep.commit("Solve", [(exercise, lambda head: exercises.with_answer(exercise, head,
                                                                           mine))], notes)
    progress.set(exercise, "done")


def tell(course, progress, exercise, found, args):
    raw = args.raw
    state = (colored("done, but ...", 33) if found.is_waste else
             colored("done", 32) if found.passed else colored("not yet", 31))
    print(f"{exercise.id} {exercise.title}: {state} ({found.seconds:.0f} s)")
    if exercise.file and not found.passed:
        print(f"  {place_of(exercise)}")
    print()
    if not found.guess:
        say(found.say)
    if found.output and not found.passed:
        lines = [part for line in found.output.splitlines()
                 for part in textwrap.wrap(line, 96, subsequent_indent="      ")]
        is_counterexample = any(line.startswith("      => ") for line in lines)
        for line in lines[-MOST_LINES:] if is_counterexample else lines[:MOST_LINES]:
            print("  | " + line)
        print()
    if found.guess:  # what the run showed comes first
        say(f"{found.guess}: {found.say}")
    if raw:
        print(found.raw)
    record(progress, exercise, found, args.answer)
    if not found.passed:
        print("./lab hint helps." + ("" if raw or not found.raw else
                                     " ./lab check --raw shows all that was printed."))
        if args.step or args.browser:
            terminal.show([found.execution] if found.execution else [], args.browser)
        elif found.execution.get("steps"):
            print("./lab check --step steps through this execution; --browser shows it in a "
                  "browser.")
        return 1
    show_solution(exercise)
    say(exercise.why)
    if exercise.measure:
        say(f"./lab score {exercise.id} measures it, on two GPUs.")
    elif exercise.score:
        tell_score(progress, exercise)
    progress.move_on(exercise)
    following = next_open(course, progress, exercise)
    print(f"Next: ./lab start {following.id}" if following else "That was the last one.")
    return 0


def import_(course, progress, args):
    """Takes the answers to questions that were given on the site, and judges each as `check`."""
    wrong = 0
    for exercise, answer in answers.imported(course, args.answer):
        if progress.state(exercise) == "done":
            print(f"{exercise.id} {exercise.title}: done before")
            continue
        found = questions.judge(course, exercise, answer)
        record(progress, exercise, found, [answer])
        progress.move_on(exercise)
        wrong += not found.passed
        print(f"{exercise.id} {exercise.title}: " +
              (colored("done", 32) if found.passed else f"{colored('not yet', 31)}. {found.say}"))
        if not found.passed and exercise.vary and exercises.default_seed():
            print("  SYMM_COURSE_SEED gives you other numbers than the site's: "
                  f"./lab start {exercise.id}")
    following = next_open(course, progress)
    print(f"Next: ./lab start {following.id}" if following else "All done.")
    return 1 if wrong else 0


def tell_score(progress, exercise):
    """Tells what the answer costs that was judged last, and keeps it if it is the best so far."""
    with check_tree.alone():
        counted = scoring.count(exercise)
    say(scoring.told(exercise, counted))
    if scoring.keep_best(exercise, counted, progress):
        answer = exercises.answer_in(exercise, exercises.read(exercise.path))
        keep.commit(f"Score {counted} in", [(exercise, lambda head: exercises.with_answer(
            exercise, head, answer))])
        progress.data["best"][exercise.id]["commit"] = keep.here()
        progress.save()


def check_all(course, progress):
    wrong = 0
    for exercise in course:
        state = progress.state(exercise)
        if check_tree.has_answer(exercise):
            found = judge_begun(course, exercise)
            state = "right" if found.passed else f"wrong: {found.say}"
            wrong += not found.passed
        print(f"{exercise.id}  {exercise.title}: {state}", flush=True)
    return 1 if wrong else 0


def judge_begun(course, exercise):
    try:
        require_begun(exercise)
        return verdict.judge(course, exercise)
    except CourseError as error:
        return verdict.Verdict(False, str(error))


def score(course, progress, args):
    scoring.show(course, args.id, progress)


def grade(_, __, args):
    """The points of the answers that are in the files and in git."""
    return grading.grade(args.folder and tool.caller / args.folder, args.json)


def watch(course, progress, args):
    exercise = chosen(course, progress, args)
    if not exercise.file:
        raise CourseError(f"{exercise.id} asks a question: ./lab check ANSWER")
    seen = None
    while True:
        now = exercise.path.stat().st_mtime_ns if exercise.path.exists() else seen  # being saved
        if now != seen:
            seen = now
            print("\n" + "-" * 88)
            try:
                if check(course, progress,
                         argparse.Namespace(id=exercise.id, all=False, raw=False, step=False,
                                            browser=False, answer=[])) == 0:
                    return 0
            except CourseError as error:
                print(error)
            print(f"Waiting for the next save of {exercise.file} (Ctrl-C ends)", flush=True)
        time.sleep(0.3)


def hint(course, progress, args):
    exercise = chosen(course, progress, args)
    progress.load()
    shown = min(progress.data["hints"].get(exercise.id, 0) + 1, len(exercise.hints))
    progress.data["hints"][exercise.id] = shown
    progress.save()
    say(f"Hint {shown} of {len(exercise.hints)}: {exercise.hints[shown - 1].strip()}")
    print("./lab hint shows the next one." if shown < len(exercise.hints) else
          "That was the last hint. ./lab solution shows the solution.")


def solution(course, progress, args):
    exercise = chosen(course, progress, args)
    if not exercise.file:
        print(f"The answer is {verdict.answer_of(course, exercise)}.")
        return
    if exercise.best and not args.yes:
        question = f"{exercise.id} is an open task: this shows the author's code."
        if not sys.stdin.isatty():
            raise CourseError(f"{question} ./lab solution {exercise.id} --yes does")
        if not input(f"{question} Show it? [y/N] ").lower().startswith("y"):
            return
    if not is_started(exercise):
        print(exercises.split(exercise, exercises.read(exercise.path))[1], end="")
        return
    require_begun(exercise)
    print("".join(difference(exercise)) or "Yours is the solution.\n", end="")


def reset(course, progress, args):
    of_lab = [e for e in course if e.group in (args.id, (args.id or "").zfill(2))]
    for exercise in of_lab:
        put_back(exercise, progress, "open")
    if of_lab:
        print(f"All exercises of {of_lab[0].lab} are open again, and its files are restored.")
        return
    exercise = chosen(course, progress, args)
    if args.id is None and progress.has_done_current():
        raise CourseError(f"{exercise.id} is done: ./lab reset {exercise.id} opens it again.")
    put_back(exercise, progress, "open")
    progress.data["hints"].pop(exercise.id, None)
    progress.save()
    where = f", and {exercise.file} is restored" if exercise.file else ""
    print(f"{exercise.id} is open again{where}.")


def put_back(exercise, progress, state: str):
    """Sets the exercise's state, and restores the file's text from before `start`. The learner's
    answer is kept in .course."""
    if not is_started(exercise):
        progress.set(exercise, state)
        return
    text = exercises.read(exercise.path)
    solution_text = exercises.read(original(exercise))
    restored = text
    if exercise.begins in text or exercise.ends in text:
        try:
            answer = exercises.answer_in(exercise, text)
            restored = exercises.without_answer(exercise, text, solution_text)
        except CourseError as error:
            raise CourseError(f"{error} The solution is in {original(exercise).relative_to(ROOT)}; "
                              f"`git diff {exercise.file}` shows what else changed.") from None
        if answer != exercises.stub_of(exercise, solution_text):
            exercises.write(STATE / f"{exercise.id}.yours", answer)
    elif exercises.split(exercise, text)[1] != solution_text:
        require_begun(exercise)
    progress.set(exercise, state)  # first, so that finish_killed() completes the rest
    if restored != text:
        exercises.write(exercise.path, restored)
    forget_original(exercise)


def forget_original(exercise):
    """The end of `reset`, when the file has its original text again."""
    text = exercises.read(original(exercise))
    keep.commit("Reset", [(exercise, lambda head: exercises.without_answer(exercise, head, text)
                           if exercise.begins in head else head)])
    original(exercise).unlink()


def finish_killed(course, progress):
    """Undoes a `start` that was killed before it changed the file, and completes a `reset` that was
    killed after that: the exercise is open, its file has the original text, and .course, too."""
    for exercise in course:
        if is_started(exercise) and progress.state(exercise) in ("open", "skipped"):
            text = exercises.read(exercise.path)
            if exercise.begins not in text and exercises.read(original(exercise)) in text:
                forget_original(exercise)


def follow_moved(course, progress):
    """Puts answers into the new files of exercises that have moved. An update keeps such an answer
    in .course only, since it knows the older course."""
    for exercise in course:
        answer = STATE / f"{exercise.id}.yours"
        if exercise.file and not is_started(exercise) and answer.exists() and \
                progress.state(exercise) in ("begun", "done") and not keep.is_elsewhere():
            put_stubs([exercise])
            answered = functools.partial(exercises.with_answer, exercise,
                                         answer=exercises.read(answer))
            exercises.write(exercise.path, answered(exercises.read(exercise.path)))
            if progress.state(exercise) == "done":
                keep.commit("Move", [(exercise, answered)])


def ask(text: str) -> str:
    try:
        return input(text).strip()
    except EOFError:
        raise CourseError("there was no answer, so nothing is skipped") from None


def skip_known(course, progress, lab: str | None):
    """Skips what is left of a lab, if its questions are answered."""
    of_lab = [e for e in course if e.group in (lab, (lab or "").zfill(2))]
    left = [e for e in of_lab if progress.state(e) != "done"]
    if not left:
        raise CourseError("name a lab with open exercises: ./lab skip 02 --if-known")
    asked = known.questions(of_lab)
    for number, question in enumerate(asked, 1):
        print(f"{number} of {len(asked)}. {question.exercise.title} ({question.exercise.file}). "
              "With this change, what is wrong?\n")
        print("".join(f"    {line}\n" for line in question.change))
        for choice, text in enumerate(question.choices, 1):
            say(f"({choice}) {text}")
        if ask(f"Your answer, 1 to {len(question.choices)}: ") != str(question.right):
            print()
            say(f"It is ({question.right}). Nothing is skipped: this lab has more for you. "
                f"./lab start {left[0].id}")
            return 1
        print("Right.\n")
    for exercise in left:
        put_back(exercise, progress, "skipped")
    progress.move_on(left[-1])
    following = next_open(course, progress, left[-1])
    print(f"You know {left[0].lab}: {len(left)} exercises are skipped." +
          (f" Next: ./lab start {following.id}" if following else ""))
    return 0


def skip(course, progress, args):
    if args.if_known:
        return skip_known(course, progress, args.id)
    exercise = chosen(course, progress, args, start_next=progress.has_done_current())
    if progress.state(exercise) == "done":
        raise CourseError(f"{exercise.id} is done: ./lab reset {exercise.id} opens it again.")
    put_back(exercise, progress, "skipped")
    progress.move_on(exercise)
    following = next_open(course, progress, exercise)
    then = f" Next: ./lab start {following.id}" if following else ""
    print(f"{exercise.id} is skipped.{then}")
    return 0


def chosen(course, progress, args, start_next=False) -> Exercise:
    """The exercise that was named, or the one that the learner is at."""
    wanted = args.id or (None if start_next else progress.data["current"])
    if wanted is None:
        following = next_open(course, progress) if start_next else None
        if following is None:
            raise CourseError("name an exercise: ./lab learn lists them.")
        return following
    for exercise in course:
        if exercise.id == wanted:
            return exercise
    raise CourseError(f"there is no exercise '{wanted}': ./lab learn lists them.")


def update(course, _, args):
    """Takes a newer version of the repository: merges it into the branch of the answers, and then
    has the stubs and solutions from there."""
    try:
        keep.git("rev-parse", "--git-dir")  # or git says why not
        if keep.branch() != keep.BRANCH:
            raise keep.GitError(f"only the branch '{keep.BRANCH}' needs it: elsewhere, `git pull`")
        if args.version is None:
            keep.git("fetch", "--quiet", "origin")
        merged = newer.take(course, args.version or "origin/HEAD")
    except keep.GitError as error:
        raise CourseError(f"git could not update, and nothing is changed: {error}") from None
    for exercise in merged.dropped:
        print(f"{exercise.id} {exercise.title} is not in {exercise.file} any more; your answer is "
              f"in .course/{exercise.id}.yours, and goes into its new file, if there is one")
    print(f"Your answers are on top of {merged.version[:9]} now. ./lab check --all checks them.")


COMMANDS = {function.__name__.rstrip("_"): function for function in (
    learn, start, check, import_, watch, hint, solution, reset, skip, score, grade, update)}


def run(args) -> int:
    """Runs a command of the course."""
    try:
        course = exercises.load()
        check_tree.recover(course)
        progress = Progress()
        finish_killed(course, progress)
        follow_moved(course, progress)
        ids = {e.id for e in course}
        current = next((e for e in course if e.id == progress.data["current"]), None)
        answers = args.command.name == "check" and current and current.kind == "predict"
        if getattr(args, "id", None) and f"0{args.id}" in ids and not (
                answers and current.within and not args.answer):
            args.id = f"0{args.id}"  # 1.1 for 01.1
        if answers and args.id and args.id not in ids:
            args.id, args.answer = None, [args.id, *args.answer]  # ./lab check ANSWER
        return COMMANDS[args.command.name](course, progress, args) or 0
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(tool.told(error)) from None
    except EOFError:
        print()
        return 130
