"""./lab release VERSION [DATE]: checks that the commit which is checked out says everywhere that it
is this version, and tags it. Pushes nothing. DATE is the changelog's, if that is not today's."""

import datetime
import re
import subprocess

from tool import ROOT, Failure


def git(*arguments: str, text: str | None = None) -> str:
    ended = subprocess.run(["git", *arguments], cwd=ROOT, input=text, capture_output=True,
                           text=True, check=False)
    if ended.returncode != 0:
        raise Failure(ended.stderr.strip() or f"git {arguments[0]} failed")
    return ended.stdout.strip()


def found(file: str, pattern: str) -> re.Match:
    match = re.search(pattern, (ROOT / file).read_text(), re.M)
    if not match:
        raise Failure(f"{file} has no line that matches {pattern}")
    return match


def numbers(version: str) -> tuple:
    return tuple(map(int, version.split(".")))


def notes(version: str, date: str) -> str:
    """The version's part of the changelog. Raises Failure if the files do not agree on it."""
    said = {"CMakeLists.txt": found("CMakeLists.txt", r"^project\(symm VERSION ([\d.]+)")[1]}
    header = "symm/c/symm.h"
    said[header] = ".".join(found(header, rf"^#define SYMM_VERSION_{part} (\d+)$")[1]
                            for part in ("MAJOR", "MINOR", "PATCH"))
    for file, other in said.items():
        if other != version:
            raise Failure(f"{file} has version {other}, not {version}")
    wanted = f"## {version} - {date}"
    first = found("CHANGELOG.md", r"^## .*$")
    if first[0] != wanted:
        raise Failure(f"the first heading of CHANGELOG.md is '{first[0]}', not '{wanted}'")
    return first.string[first.end():].split("\n## ")[0].strip()


def release(version: str, date: str):
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Failure(f"'{version}' is not a version: write 0.3.0")
    if git("branch", "--show-current") != "main":
        raise Failure("releases are made from the branch main: git switch main")
    changed = git("status", "--porcelain")
    if changed:
        raise Failure(f"there are changes that are not committed, or files that git does not know:"
                      f"\n{changed}")
    text = notes(version, date)
    tags = [tag for tag in git("tag", "--list", "v*").split() if re.fullmatch(r"v[\d.]+", tag)]
    later = [tag for tag in tags if numbers(tag[1:]) >= numbers(version)]
    if later:
        raise Failure(f"there is a tag {max(later, key=lambda tag: numbers(tag[1:]))} already")
    git("tag", "--annotate", f"v{version}", "--cleanup=whitespace", "--file=-",
        text=f"symm {version}\n\n{text}\n")
    print(f"tagged {git('rev-parse', '--short', 'HEAD')} as v{version}. To publish it:\n"
          f"git push --atomic origin main v{version}")


def main(args):
    release(args.version, args.date or datetime.date.today().isoformat())
