#!/usr/bin/env python3
"""Explores scenes without the assumption that the end of a kernel is a fence for other ranks. What
is wrong then must be in the table of docs/EXPLORE.md, section "The end of a kernel", and each scene
named there must be wrong.

    kernel_end.py PROGRAM..."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/EXPLORE.md"
# Each wait ends by its condition in one execution or a few; the second one is mostly wrong.
ARGUMENTS = ["--kernel-end", "nothing", "--go-on", "--executions", "20", "--lines", "0"]


def table() -> list:
    """The names of scenes in the first column, with *."""
    section = PAGE.read_text().split("\n### The end of a kernel\n")[1].split("\n### ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall("`(.+?)`", row)]


def wrong_scenes(program: str) -> set:
    """Scenes by rule are many: of them only those of two ranks with one thread."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    chosen = {re.sub("/2x1/.*", "/2x1/", name) for name in listed.stdout.split()
              if name.startswith("by_rule/") and "/2x1/" in name}
    done = subprocess.run([program, *sorted(chosen), *ARGUMENTS], capture_output=True, text=True)
    if done.returncode not in (0, 1) or done.stderr:
        sys.exit(f"{program} ended with status {done.returncode}: {done.stderr}")
    return set(re.findall("^([^ ]+) .* WRONG$", done.stdout, re.M))


def main(*programs: str) -> int:
    wrong, names = set().union(*map(wrong_scenes, programs)), table()
    unnamed = sorted(scene for scene in wrong if not any(fnmatchcase(scene, n) for n in names))
    right = [name for name in names if not any(fnmatchcase(scene, name) for scene in wrong)]
    print(f"{len(wrong)} scenes are wrong. Not in the table: {unnamed}. Right: {right}")
    return 0 if wrong and not unnamed and not right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
