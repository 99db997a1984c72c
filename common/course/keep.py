"""Keeps what the learner begins and solves in git, on a branch of its own. So `git diff` and the
editor's margin show the learner's lines, and not the solution that was taken out.

Only the exercise's own change is committed, on top of what HEAD has: neither other edits of the
file, nor staged changes. No hook runs, nothing is signed, and the index is not locked."""

import os
import subprocess

from exercises import ROOT, CourseError, Exercise

BRANCH = "course"
INDEX = ROOT / ".course" / "index"
LEARNER = {"GIT_AUTHOR_NAME": "learner", "GIT_AUTHOR_EMAIL": "learner@localhost",
           "GIT_COMMITTER_NAME": "learner", "GIT_COMMITTER_EMAIL": "learner@localhost"}


class GitError(Exception):
    """git has failed. The message is git's own."""


def git(*arguments: str, text: str = "", more: dict | None = None) -> str:
    """git's output without its last newline. The caller's GIT_* variables (a hook's, for example)
    do not choose the repository."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        ended = subprocess.run(["git", *arguments], cwd=ROOT, input=text.encode(), check=False,
                               capture_output=True, env={**environment, **(more or {})})
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
    """Commits HEAD's version of the file, changed by `change`. Does nothing if this is not a git
    repository of its own."""
    if not is_repository():
        return
    try:
        if branch() != BRANCH:
            git("switch", "--create", BRANCH)
            print(f"(Your answers are kept on the git branch '{BRANCH}'.)\n")
        text = change(git("show", f"HEAD:{exercise.file}") + "\n")
        own = {"GIT_INDEX_FILE": str(INDEX)}
        blob = git("hash-object", "-w", "--stdin", text=text)
        git("read-tree", "HEAD", more=own)
        git("update-index", "--cacheinfo", f"100644,{blob},{exercise.file}", more=own)
        tree = git("write-tree", more=own)
        message = f"{verb} {exercise.id} {exercise.title}"
        new = git("commit-tree", tree, "-p", "HEAD", "-m", message, more=identity())
        git("update-ref", "-m", message, "HEAD", new)
        git("reset", "--quiet", "--", exercise.file)
    except (GitError, CourseError) as error:
        print(f"(git could not keep this, so `git diff` may show the solution: {error})\n")


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
