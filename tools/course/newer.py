"""`./lab update`: merges a newer version of the repository into the branch of the answers.

git merges texts in which the solutions stand in the place of the exercises that are begun, so no
answer conflicts with a newer solution. The merge is made among git's objects alone: all that can
fail has passed before a file, the branch or .course changes."""

import contextlib
import dataclasses
import signal

import check_tree
import exercises
import keep
from check_tree import STATE, accepted, is_started, original
from exercises import ROOT, CourseError, Exercise
from keep import GitError, text_at


@dataclasses.dataclass
class Merged:
    """What the files, the branch and .course are to have."""

    version: str  # its commit
    tree: str  # of the new commit
    files: list  # those of the exercises that are begun
    working: dict = dataclasses.field(default_factory=dict)  # their new texts, by name
    solutions: dict = dataclasses.field(default_factory=dict)  # the newer ones, by number
    dropped: list = dataclasses.field(default_factory=list)  # that the version lacks


def take(course: list, version: str) -> Merged:
    """Raises GitError or CourseError, and then nothing has changed."""
    begun = [e for e in course if is_started(e)]
    for exercise in begun:
        check_tree.require_begun(exercise)
    if keep.succeeds("rev-parse", "--verify", "--quiet", "MERGE_HEAD"):
        raise GitError("a merge is not finished: `git commit --all` or `git merge --abort` first")
    texts = {e.file: exercises.read(e.path) for e in begun}
    merged = merge(begun, version, texts)
    with uninterrupted():
        replace(begun, merged, texts)
    return merged


def plain(begun: list, file: str, text: str) -> str:
    """A file's text with the solutions, as it was before its exercises were begun."""
    for exercise in begun:
        if exercise.file == file and exercise.begins in text:
            text = exercises.without_answer(exercise, text, exercises.read(original(exercise)))
    return text


def merge(begun: list, version: str, texts: dict) -> Merged:
    committed = {file: text_at("HEAD", file) for file in texts}
    before = {file: plain(begun, file, text) for file, text in committed.items()}
    commit_id = keep.commit_of(version)
    tree = keep.merged_tree(keep.tree_with("HEAD", before), commit_id)
    merged = Merged(commit_id, "", list(texts))
    kept, in_the_way = {}, set()
    for file, text in texts.items():
        if keep.succeeds("cat-file", "-e", f"{tree}:{file}"):
            kept[file] = merged.working[file] = text_at(tree, file)
        without_answers = plain(begun, file, text)
        if without_answers != before[file]:  # the learner has changed more than answers
            if kept.get(file) == before[file]:
                merged.working[file] = without_answers
            else:
                in_the_way.add(file)
    newer = newer_descriptions(begun, tree)
    for exercise in begun:
        file = exercise.file
        try:
            new = newer[exercise.id]
            solution = exercises.split(new, text_at(commit_id, file))[1]
            kept[file], merged.working[file] = (
                moved(exercise, new, solution, committed[file], kept[file]),
                moved(exercise, new, solution, texts[file], merged.working[file]))
            merged.solutions[exercise.id] = solution
        except (KeyError, CourseError):
            merged.dropped.append(exercise)
    merged.tree = keep.tree_with(tree, kept)
    in_the_way |= keep.in_the_way(merged.tree) - set(texts)
    if in_the_way:
        raise GitError("it would overwrite your changes: commit or stash them first, in " +
                       ", ".join(sorted(in_the_way)))
    return merged


def newer_descriptions(begun: list, tree: str) -> dict:
    """The exercises as the tree describes them, by their numbers: those that are in the same file
    still."""
    numbers = {e.id: e for e in begun}
    found = {}
    for page in keep.git("ls-tree", "-r", "--name-only", tree, "labs").split("\n"):
        if page.endswith("/exercises.toml"):
            for entry in exercises.tomllib.loads(text_at(tree, page))["exercise"]:
                old = numbers.get(entry["id"])
                if old and entry.get("file") == old.file:
                    place = {"function": "", "lines": [], "follow": "", "stub": []}
                    found[old.id] = dataclasses.replace(
                        old, title=entry["title"], **{k: entry.get(k, v) for k, v in place.items()})
    return found


def moved(exercise: Exercise, new: Exercise, solution: str, text: str, to: str) -> str:
    """The text `to` with the answer that `text` has, or with the newer stub in the place of a
    stub."""
    if exercise.begins not in text:
        return to
    answer = exercises.answer_in(exercise, text)
    with contextlib.suppress(CourseError):  # after a merge by hand the older stub is not known
        if answer == exercises.stub_of(exercise, exercises.read(original(exercise))):
            answer = exercises.stub_of(new, solution)
    return exercises.with_answer(new, to, answer)


def replace(begun: list, merged: Merged, texts: dict):
    for exercise in begun:
        exercises.write(STATE / f"{exercise.id}.yours",
                        exercises.answer_in(exercise, texts[exercise.file]))
    try:
        keep.move_to(merged.tree, merged.version, merged.files)
    except GitError:
        for file, text in texts.items():
            exercises.write(ROOT / file, text)
        raise
    for file, text in merged.working.items():
        if text != exercises.read(ROOT / file):
            exercises.write(ROOT / file, text)
    for exercise in begun:
        accepted(exercise).unlink(missing_ok=True)
        if exercise.id in merged.solutions:
            exercises.write(original(exercise), merged.solutions[exercise.id])
        else:
            original(exercise).unlink()


@contextlib.contextmanager
def uninterrupted():
    """Ctrl-C comes when the block has ended: here, and in the programs that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM,
                                                       signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
