"""Reads files and git repositories of strangers. Nothing of theirs is run, and no link is followed.
git sees only copies of their objects in a repository of our own, so it finds neither their
configuration, hooks and attributes nor the objects of another repository."""

import os
import re
import resource
import signal
import stat
import subprocess
import tempfile
from pathlib import Path

import keep
from exercises import CourseError

FILE_LIMIT = 1 << 18  # bytes of a source; the largest has 20 KB
REPOSITORY_LIMIT = 1 << 29  # bytes of a repository's objects; this one has 16 MB
OBJECTS_LIMIT = 100_000
OUTPUT_LIMIT = 64 << 20  # bytes that git prints: all commit messages together, for example
GIT_SECONDS = 60
GIT_MEMORY = 2 << 30

COMMIT = re.compile(r"[0-9a-f]{40}")
BRANCH = re.compile(rf"refs/(heads|remotes/[^/\s]+)/{keep.BRANCH}")
ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
               "GIT_ATTR_NOSYSTEM": "1", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}


class Unreadable(CourseError):
    """A repository or a file that cannot be graded. The message says why."""


def decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error}") from None


def open_below(folder: Path, path: str, flags: int = 0) -> int:
    """A descriptor of a file or folder below a folder; no part of the path may be a link. Opening
    does not wait. Raises Unreadable, or FileNotFoundError."""
    *parents, name = path.split("/")
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for part, more in [*((parent, os.O_DIRECTORY) for parent in parents), (name, flags)]:
        try:
            below = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | more, dir_fd=at)
        except FileNotFoundError:
            raise
        except OSError as error:  # ELOOP for a link, ENOTDIR, EACCES, ENXIO for a socket
            raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
        finally:
            os.close(at)
        at = below
    return at


def read_bytes(folder: Path, path: str, limit: int) -> bytes:
    """A regular file's content. Raises Unreadable, or FileNotFoundError."""
    descriptor = open_below(folder, path)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        os.close(descriptor)
        raise Unreadable(f"{path} has more than {limit} bytes" if stat.S_ISREG(status.st_mode) else
                         f"{path} is not a regular file")
    with open(descriptor, "rb") as file:
        return file.read(limit)


def entries_of(folder: Path, path: str) -> list:
    """The names in a folder below a folder. Raises Unreadable."""
    try:
        descriptor = open_below(folder, path, os.O_DIRECTORY)
    except FileNotFoundError:
        return []
    names = []
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > OBJECTS_LIMIT:
                    raise Unreadable(f".git/{path} has more than {OBJECTS_LIMIT} files")
    finally:
        os.close(descriptor)
    return sorted(names)


def copy_repository(git: Path, copy: Path) -> str:
    """Copies the objects into a new repository. Returns the commit of the branch, or ""."""
    for alternates in ("objects/info/alternates", "objects/info/http-alternates"):
        if os.path.lexists(git / alternates):
            raise Unreadable(f"its .git/{alternates} names another repository: clone it anew")
    paths = [f"objects/pack/{name}" for name in entries_of(git, "objects/pack")
             if re.fullmatch(r"pack-[0-9a-f]+\.(pack|idx)", name)]
    for folder in entries_of(git, "objects"):
        if re.fullmatch("[0-9a-f]{2}", folder):
            paths += [f"objects/{folder}/{name}" for name in entries_of(git, f"objects/{folder}")
                      if re.fullmatch("[0-9a-f]{38}", name)]
        if len(paths) > OBJECTS_LIMIT:
            raise Unreadable(f"it has more than {OBJECTS_LIMIT} objects")
    left = REPOSITORY_LIMIT
    for path in (*paths, "shallow"):  # the oldest commits that it has, if it is not complete
        try:
            data = read_bytes(git, path, left)
        except FileNotFoundError:
            continue
        left -= len(data)
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    for part in ("objects", "refs"):
        (copy / part).mkdir(exist_ok=True)
    (copy / "HEAD").write_text("ref: refs/heads/none\n")
    return commit_of_branch(git)


def commit_of_branch(git: Path) -> str:
    """The commit of the learner's own branch, else of one that was fetched, or ""."""
    names = [f"refs/heads/{keep.BRANCH}", *(
        f"refs/remotes/{name}/{keep.BRANCH}" for name in entries_of(git, "refs/remotes"))]
    found = {}
    try:
        for line in read_bytes(git, "packed-refs", 64 * FILE_LIMIT).decode("latin-1").split("\n"):
            commit, _, name = line.partition(" ")
            if BRANCH.fullmatch(name):
                found[name] = commit
    except FileNotFoundError:
        pass
    for name in names:
        try:
            found[name] = read_bytes(git, name, FILE_LIMIT).decode("latin-1").strip()
        except FileNotFoundError:
            pass
    name = min(found, default="")  # "heads" comes before "remotes"
    if name and not COMMIT.fullmatch(found[name]):
        raise Unreadable(f"its .git/{name} does not name a commit")
    return found.get(name, "")


def git_in(copy: str, *arguments: str) -> bytes:
    """The output of git in a copy. Raises Unreadable."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            ended = subprocess.run(
                ["git", f"--git-dir={copy}", "--no-pager", *arguments], cwd=copy, check=False,
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors, timeout=GIT_SECONDS,
                env={**keep.environment(), **ENVIRONMENT}, preexec_fn=limit_git)
        except subprocess.TimeoutExpired:
            raise Unreadable(f"git {arguments[0]} did not end within {GIT_SECONDS} s") from None
        if ended.returncode == -signal.SIGXFSZ:
            raise Unreadable(f"git {arguments[0]} prints more than {OUTPUT_LIMIT >> 20} MiB")
        if ended.returncode != 0:
            errors.seek(0)
            lines = errors.read(FILE_LIMIT).decode(errors="replace").strip().split("\n")
            raise Unreadable(f"git {arguments[0]}: {lines[-1] or f'status {ended.returncode}'}")
        output.seek(0)
        return output.read()


def limit_git():
    for kind, most in ((resource.RLIMIT_AS, GIT_MEMORY), (resource.RLIMIT_FSIZE, OUTPUT_LIMIT),
                       (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
