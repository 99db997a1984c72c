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

    output = ""  # what it has printed all the same


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
        why = ended.stderr.decode(errors="replace").strip() or f"git {arguments[0]} failed"
        if "dubious ownership" in why:
            why = ("git reads no clone of another user's unless you trust it: git config --global "
                   f"--add safe.directory '{ROOT}'")
        error = GitError(why)
        error.output = ended.stdout.decode(errors="replace").strip()
        raise error
    return ended.stdout.decode().removesuffix("\n")


def succeeds(*arguments: str) -> bool:
    try:
        git(*arguments)
        return True
    except GitError:
        return False


def is_repository() -> bool:
    try:
        return ROOT.samefile(git("rev-parse", "--show-toplevel"))
    except GitError:
        return False


def branch() -> str:
    """The branch that is checked out, or "": none is, or this is not a repository of its own."""
    return git("branch", "--show-current") if is_repository() else ""


def is_elsewhere() -> bool:
    """Whether the learner's answers are on a branch that is not checked out."""
    return is_repository() and branch() != BRANCH and bool(git("branch", "--list", BRANCH))


def here() -> str:
    """The commit that is checked out, or ""."""
    return git("rev-parse", "--short", "HEAD") if is_repository() else ""


def require_branch():
    """Raises CourseError if the learner's answers are on a branch that is not checked out."""
    if is_elsewhere():
        raise CourseError(f"your answers are on the branch '{BRANCH}', which is not checked out: "
                          f"`git switch {BRANCH}`, or `git branch -m {BRANCH} old` to begin anew")


def require_place():
    """Raises CourseError if these files belong to the repository of another project. Says so if
    they belong to none."""
    try:
        top = git("rev-parse", "--show-toplevel")
        if ROOT.samefile(top):
            return
        if git("ls-files", "labs"):
            raise CourseError(
                f"these files belong to the git repository {top}: stubs would be changes of that "
                "project, and your answers would not be kept. Take the course in a clone of its "
                "own: git clone, or git submodule add")
        why = f"they are not tracked in {top}"
    except GitError as error:
        why = str(error).split("\n")[0]
    print(f"(Only these files keep your answers, and ./lab update cannot take a newer version: "
          f"{why}.\nIn a git clone there is a branch for them.)\n", flush=True)


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
            texts.setdefault(file, text_at("HEAD", file))
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
        before = branch() or f"--detach {git('rev-parse', '--short', 'HEAD')}"
        print(f"(Your answers are kept on the git branch '{BRANCH}'. `git switch {before}` shows "
              f"the files without\nthem, and `git switch {BRANCH}` goes on. ./lab update takes a "
              "newer version.)\n")
        git("switch", "--create", BRANCH)
    new = git("commit-tree", tree_with("HEAD", texts), "-p", "HEAD", "-m", message,
              more=identity())
    git("update-ref", "-m", message, "HEAD", new)


def tree_with(base: str, texts: dict) -> str:
    """A commit's or tree's tree, with these texts in some files."""
    # A new index each time: a killed git's lock of an earlier one is not in the way.
    with tempfile.TemporaryDirectory() as folder:
        own = {"GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", base, more=own)
        for file, text in texts.items():
            blob = git("hash-object", "-w", "--stdin", text=text)
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{file}", more=own)
        return git("write-tree", more=own)


def identity() -> dict:
    try:
        git("var", "GIT_COMMITTER_IDENT")
        return {}
    except GitError:
        return LEARNER


def commit_of(version: str) -> str:
    try:
        return git("rev-parse", "--verify", "--quiet", f"{version}^{{commit}}")
    except GitError:
        raise GitError(f"there is no version '{version}'") from None


def merged_tree(mine: str, version: str) -> str:
    """The tree of a merge of the tree `mine`, on top of HEAD, with a commit."""
    commit_id = git("commit-tree", mine, "-p", "HEAD", "-m", "Without answers", more=identity())
    try:
        return git("merge-tree", "--write-tree", "--name-only", "--no-messages", commit_id, version)
    except GitError as error:
        tree, *conflicts = error.output.split("\n")
        raise GitError(f"conflicts in {', '.join(filter(None, conflicts))}, outside of exercises. "
                       f"`git merge {version[:9]}`, edit, `git commit --all`, then ./lab update "
                       "again" if conflicts else
                       f"{str(error).splitlines()[0]} (it needs git 2.38 or newer)") from None


def names(*arguments: str) -> set:
    """The names of files that a command of git prints."""
    verb, *others = arguments
    return set(filter(None, git(verb, "-z", "--name-only", *others).split("\0")))


def in_the_way(tree: str) -> set:
    """The files with changes that are not committed, which a move to the tree would overwrite."""
    succeeds("update-index", "-q", "--refresh")  # or equal files with other times would count
    changed = names("diff-tree", "-r", "HEAD", tree)
    untracked = {file for file in changed - names("ls-tree", "-r", "HEAD")
                 if os.path.lexists(ROOT / file)}
    return changed & (names("diff", "HEAD") | names("diff", "--cached", "HEAD")) | untracked


def move_to(tree: str, version: str, overwritten: list):
    """Moves the branch and its files to the tree, as a merge of the version. Changes of the files
    `overwritten` are lost; other files keep theirs."""
    parents = [] if succeeds("merge-base", "--is-ancestor", version, "HEAD") else ["-p", version]
    is_same = tree == git("rev-parse", "HEAD^{tree}")
    new = "HEAD" if is_same and not parents else git(
        "commit-tree", tree, "-p", "HEAD", *parents, "-m", f"Update to {version[:9]}",
        more=identity())
    if overwritten:
        git("checkout", "--quiet", "HEAD", "--", *overwritten)
    git("read-tree", "-m", "-u", "HEAD", new)
    git("update-ref", "-m", "./lab update", "HEAD", new)


def text_at(version: str, file: str) -> str:
    """A file's text in a commit or tree."""
    return git("show", f"{version}:{file}") + "\n"


def text_before(exercise: Exercise) -> str:
    """The exercise's file as it was before it was begun."""
    begun = git("log", "-1", "--format=%H", "--fixed-strings", f"--grep=Begin {exercise.id} ", "--",
                exercise.file)
    if not begun:
        raise GitError("no commit has begun it")
    return text_at(f"{begun}~", exercise.file)
