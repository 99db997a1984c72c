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


def environment() -> dict:
    """Without the caller's GIT_* variables (a hook's, for example): they choose a repository."""
    return {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}


def git(*arguments: str, text: str = "", more: dict | None = None) -> str:
    """git's output without its last newline."""
    try:
        ended = subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *arguments], cwd=ROOT,
                               input=text.encode(), check=False, capture_output=True,
                               env={**environment(), **(more or {})})
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


def require_branch():
    """Raises CourseError if the learner's answers are on a branch that is not checked out."""
    if branch() not in ("", BRANCH) and git("branch", "--list", BRANCH):
        raise CourseError(f"your answers are on the branch '{BRANCH}', which is not checked out: "
                          f"`git switch {BRANCH}`, or `git branch -m {BRANCH} old` to begin anew")


def commit(verb: str, changes: list, notes: str = ""):
    """Commits HEAD's versions of the files of some exercises, as (exercise, function that changes
    the file's text), if there is another text. Does nothing if this is not a git repository of its
    own."""
    if not is_repository():
        return
    try:
        texts, changed = {}, {}
        for exercise, change in changes:
            file = exercise.file
            texts.setdefault(file, git("show", f"HEAD:{file}") + "\n")
            text = change(texts[file])
            if text != texts[file]:
                texts[file] = text
                changed[f"{verb} {exercise.id} {exercise.title}"] = file
        if changed:
            lines = list(changed)  # `grade` reads them, and the notes
            subject = lines if len(lines) == 1 else [f"{verb} lab {changes[0][0].group}", ""]
            message = "\n".join(subject + (lines if len(lines) > 1 else []))
            commit_texts(message + notes, {file: texts[file] for file in changed.values()})
        git("reset", "--quiet", "--", *texts)
    except (GitError, CourseError) as error:
        print(f"(git could not keep this, so `git diff` may show the solution: {error})\n")


def note(exercise: Exercise, notes: str):
    """Commits no file, but that the exercise is solved, for `grade`."""
    if is_repository():
        try:
            commit_texts(f"Solve {exercise.id} {exercise.title}{notes}", {})
        except (GitError, CourseError) as error:
            print(f"(git could not keep this answer for ./lab grade: {error})\n")


def commit_texts(message: str, texts: dict):
    """Commits these texts of files, by their names, or none: then only the message is kept."""
    if branch() != BRANCH:
        require_branch()
        print(f"(Your answers are kept on the git branch '{BRANCH}'. `git switch "
              f"{branch() or '-'}` shows the files without\nthem, and `git switch {BRANCH}` goes "
              "on. ./lab update takes a newer version.)\n")
        git("switch", "--create", BRANCH)
    # A new index each time: a killed git's lock of an earlier one is not in the way.
    with tempfile.TemporaryDirectory() as folder:
        own = {"GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", "HEAD", more=own)
        for file, text in texts.items():
            blob = git("hash-object", "-w", "--stdin", text=text)
            git("update-index", "--cacheinfo", f"100644,{blob},{file}", more=own)
        tree = git("write-tree", more=own)
    new = git("commit-tree", tree, "-p", "HEAD", "-m", message, more=identity())
    git("update-ref", "-m", message, "HEAD", new)


def identity() -> dict:
    try:
        git("var", "GIT_COMMITTER_IDENT")
        return {}
    except GitError:
        return LEARNER


def merge(version: str) -> str:
    """Merges another version into the branch that is checked out. Returns its commit."""
    commit_id = git("rev-parse", "--verify", f"{version}^{{commit}}")
    try:
        git("merge", "--no-edit", "--quiet", commit_id, more=identity())
    except GitError as error:
        conflicts = git("diff", "--name-only", "--diff-filter=U")
        raise GitError(f"conflicts in {', '.join(conflicts.split())}: edit, `git commit --all`, "
                       "then ./lab update again" if conflicts else str(error)) from None
    return commit_id


def text_before(exercise: Exercise) -> str:
    """The exercise's file as it was before it was begun."""
    begun = git("log", "-1", "--format=%H", "--fixed-strings", f"--grep=Begin {exercise.id} ", "--",
                exercise.file)
    if not begun:
        raise GitError("no commit has begun it")
    return git("show", f"{begun}~:{exercise.file}") + "\n"
