"""Keeps what the learner begins and solves in git, on a branch of its own. So `git diff` and the
editor's margin show the learner's lines, and not the solution that was taken out.

Only the exercise's own change is committed, on top of what HEAD has: neither other edits of the
file, nor staged changes. No hook runs, nothing is signed, and the index is not locked."""

import os
import subprocess
import tempfile

from exercises import ROOT, CourseError, Exercise

BRANCH = "course"
LEARNER = {"GIT_AUTHOR_NAME": "learner", "GIT_AUTHOR_EMAIL": "learner@localhost",
           "GIT_COMMITTER_NAME": "learner", "GIT_COMMITTER_EMAIL": "learner@localhost"}


class GitError(Exception):
    """git has failed. The message is git's own."""


def git(*arguments: str, text: str = "", more: dict | None = None) -> str:
    """git's output without its last newline. The caller's GIT_* variables (a hook's, for example)
    do not choose the repository."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        ended = subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *arguments], cwd=ROOT,
                               input=text.encode(), check=False, capture_output=True,
                               env={**environment, **(more or {})})
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    if ended.returncode != 0:
        raise GitError(ended.stderr.decode(errors="replace").strip() or
                       f"git {arguments[0]} failed")
    return ended.stdout.decode().removesuffix("\n")


def is_repository() -> bool:
    try:
        return ROOT.samefile(git("rev-parse", "--show-toplevel"))
    except GitError:
        return False


def branch() -> str:
    try:
        return git("branch", "--show-current")
    except GitError:
        return ""


def commit(exercise: Exercise, verb: str, change):
    """Commits HEAD's version of the file, changed by `change`, if that is another text. Does
    nothing if this is not a git repository of its own."""
    if not is_repository():
        return
    try:
        head = git("show", f"HEAD:{exercise.file}") + "\n"
        text = change(head)
        if text != head:
            commit_text(exercise, f"{verb} {exercise.id} {exercise.title}", text)
        git("reset", "--quiet", "--", exercise.file)
    except (GitError, CourseError) as error:
        print(f"(git could not keep this, so `git diff` may show the solution: {error})\n")


def commit_text(exercise: Exercise, message: str, text: str):
    if branch() != BRANCH:
        if git("branch", "--list", BRANCH):
            raise GitError(f"your answers are on the branch '{BRANCH}', which is not checked out: "
                           f"`git switch {BRANCH}`, or `git branch -m {BRANCH} old` to begin anew")
        git("switch", "--create", BRANCH)
        print(f"(Your answers are kept on the git branch '{BRANCH}'.)\n")
    blob = git("hash-object", "-w", "--stdin", text=text)
    # A new index each time: a killed git's lock of an earlier one is not in the way.
    with tempfile.TemporaryDirectory() as folder:
        own = {"GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", "HEAD", more=own)
        git("update-index", "--cacheinfo", f"100644,{blob},{exercise.file}", more=own)
        tree = git("write-tree", more=own)
    new = git("commit-tree", tree, "-p", "HEAD", "-m", message, more=identity())
    git("update-ref", "-m", message, "HEAD", new)


def identity() -> dict:
    try:
        git("var", "GIT_COMMITTER_IDENT")
        return {}
    except GitError:
        return LEARNER


def text_before(exercise: Exercise) -> str:
    """The exercise's file as it was before it was begun."""
    begun = git("log", "-1", "--format=%H", "--fixed-strings", f"--grep=Begin {exercise.id} ", "--",
                exercise.file)
    if not begun:
        raise GitError("no commit has begun it")
    return git("show", f"{begun}~:{exercise.file}") + "\n"
