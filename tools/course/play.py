"""Plays the whole course, as CI does: every stub and every wrong answer must fail for its named
reason, and every solution must pass. The learner's files are not touched."""

import argparse
import json
import math
import os
import time
from pathlib import Path

import answers
import harmful_answers
import course
import check_tree
import exercises
import questions
import score
import tool
import verdict
from exercises import CourseError, TooFewGpus


COURSE = exercises.load()


class Fault(Exception):
    """A fault of an exercise."""


def expect(exercise, what: str, answer: str, passed: bool, wrong: int, times: list):
    found = verdict.judge(COURSE, exercise, answer)
    times.append(found.seconds)
    if (found.passed, found.wrong) != (passed, wrong):
        meant = ("to pass" if passed else "to fail") + (f" with verdict {wrong}" if wrong >= 0 else
                                                        "")
        raise Fault(f"{what}: expected {meant}, but: {found.say} (verdict {found.wrong})\n"
                    f"{found.output}")
    return found


def try_others(exercise, number: int, answer: str, found):
    """Tries all other rules on a wrong answer. Its own came first; but one that looks at the code
    (`has`) must not fit another's."""
    told = {exercise.wrong[number].told}
    for other, rule in enumerate(exercise.wrong):
        if (rule.shows and rule.told not in told and rule.is_waste == found.is_waste and
                verdict.fits(rule, found.raw, answer)):
            told.add(rule.told)
            say = exercise.wrong[rule.told].say
            print(f"   wrong answer {number} also fits rule {other}: {say[:60]}", flush=True)
            if rule.has:
                raise Fault(f"wrong answer {number} fits rule {other}, which looks at the code")


def play_code(exercise, times, others):
    if check_tree.is_started(exercise):
        raise Fault(f"it is begun: ./lab reset {exercise.id}")
    text = exercises.read(exercise.path)
    solution = exercises.split(exercise, text)[1]
    stub = exercises.stub_of(exercise, solution)
    if exercise.kind == "fix":
        its_own = [i for i, w in enumerate(exercise.wrong) if not (w.change or w.text)]
        if len(its_own) != 1:
            raise Fault("exactly one verdict must be the stub's, without change or text")
        expect(exercise, "the stub", stub, False, its_own[0], times)
    else:
        found = expect(exercise, "the stub", stub, False, -1, times)
        if f"Exercise {exercise.id} is not written yet: follow" not in found.say:
            raise Fault(f"the stub: {found.say}\n{found.output}")
    for number, wrong in enumerate(exercise.wrong):
        if wrong.change or wrong.text:
            answer = wrong.text or exercises.changed(solution, wrong.change)
            found = expect(exercise, f"wrong answer {number}", answer,
                           exercise.wrong[wrong.told].is_waste, wrong.told, times)
            if others:
                try_others(exercise, number, answer, found)
    expect(exercise, "the solution", solution, True, -1, times)
    if exercise.best:
        play_best(exercise, solution, times)
    begun = exercises.with_answer(exercise, text, stub)
    if exercises.without_answer(exercise, begun, solution) != text:
        raise Fault(f"`reset` would not bring {exercise.file} back")


def play_best(exercise, solution, times):
    """The best known answer is right, and costs what the exercise says."""
    name, answer = score.best_known(exercise)
    if answer != solution:
        expect(exercise, f"the answer of {name}", answer, True, -1, times)
    with check_tree.alone():
        counted = score.count(exercise)
    if counted != exercise.best:
        raise Fault(f"the answer of {name} costs {counted}, not {exercise.best}")


def play_refusal(exercise, progress):
    """This machine has too few GPUs: `check` reports it, and changes nothing."""
    before = json.dumps(progress.data)
    try:
        course.check([exercise], progress,
                     argparse.Namespace(id=exercise.id, all=False, raw=False, step=False,
                                        browser=False, answer=["1"]))
        raise Fault("it should be refused")
    except TooFewGpus as refusal:
        print(refusal, flush=True)
    if json.dumps(progress.data) != before:
        raise Fault("its refusal changed the learner's progress")


def play_question(exercise, times):
    variants = [next(e for e in exercises.load(seed=number) if e.id == exercise.id)
                for number in range(math.lcm(*map(len, exercise.vary.values())))]
    rights = [verdict.answer_of(COURSE, variant) for variant in variants]
    seals = [] if exercise.within else [answers.sealed(exercise, right) for right in rights]
    if [seal for variant in variants for seal in variant.sealed] != seals:
        raise Fault(f"its program answers {rights}: write sealed = {json.dumps(seals)}")
    expect_answer(exercise, rights[0], -1, times)
    for number, wrong in enumerate(exercise.wrong):
        given = wrong.answer or str(questions.number_of(rights[0]) * wrong.factor)
        expect_answer(exercise, given, number, times)


def expect_answer(exercise, given: str, wrong: int, times: list):
    found = questions.judge(COURSE, exercise, given)
    times.append(found.seconds)
    if (found.passed, found.wrong) != (wrong < 0, wrong):
        raise Fault(f"{given} should be {f'wrong, by verdict {wrong}' if wrong >= 0 else 'right'}: "
                    f"{found.say}")


def play(exercise, progress, others) -> list:
    """Returns the times of its checks, in seconds. Raises Fault."""
    times = []
    if len(exercise.hints) != 3:
        raise Fault(f"it has {len(exercise.hints)} hints, not 3")
    glossary = (exercises.ROOT / "docs/GLOSSARY.md").read_text()
    for word in exercise.words:
        if f"**{word}**" not in glossary:
            raise Fault(f"docs/GLOSSARY.md does not explain '{word}'")
    if not verdict.has_gpus_for(exercise):
        play_refusal(exercise, progress)
    elif exercise.kind == "predict":
        play_question(exercise, times)
    else:
        play_code(exercise, times, others)
    return times


def is_ours(name: str) -> bool:
    """Whether this process plays it: alone, or because it came first in SYMM_PLAY_SHARED, a folder
    of several processes, each with its own copy of the tree."""
    shared = os.environ.get("SYMM_PLAY_SHARED")
    if shared:
        try:
            Path(shared, name).touch(exist_ok=False)
        except FileExistsError:
            return False
    return True


def main(args) -> int:
    wanted = args.id or ["", "bad"]
    chosen = [e for e in COURSE if any(w in ("", e.id, e.group) for w in wanted)]
    if not chosen and wanted != ["bad"]:
        raise tool.Failure(f"there is no exercise '{' '.join(wanted)}'", 2)
    course.STATE = exercises.ROOT / "build" / "played"  # the learner's own progress stays
    progress = course.Progress()
    begun = time.monotonic()
    faults = []
    rows = []
    for exercise in reversed(chosen) if args.backwards else chosen:
        if not is_ours(exercise.id):
            continue
        print(f"== {exercise.id} {exercise.title}", flush=True)
        try:
            times = play(exercise, progress, args.others)
            if times:
                rows.append((exercise, times))
        except (Fault, CourseError) as fault:
            print(f"FAULT in {exercise.id}: {fault}", flush=True)
            faults.append(exercise.id)
    if "bad" in wanted and is_ours("bad"):
        for fault in harmful_answers.try_all(COURSE):
            print(f"FAULT: {fault}", flush=True)
            faults.append("bad")
    print(f"\n{'exercise':52} {'checks':>6} {'median s':>9} {'max s':>7}")
    for exercise, times in rows:
        print(f"{exercise.id + ' ' + exercise.title:52} {len(times):6} "
              f"{sorted(times)[len(times) // 2]:9.1f} {max(times):7.1f}")
    print(f"\n{len(rows)} exercises in {time.monotonic() - begun:.0f} s, "
          f"{len(faults)} with faults {' '.join(faults)}")
    return 1 if faults else 0
