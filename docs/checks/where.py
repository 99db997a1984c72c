#!/usr/bin/env python3
"""Checks docs/WHERE.md: each row's files exist, and contain the row's name. Checks docs/READ.md:
each row's file exists, and has about as many lines as the page says."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LABS = {path.name[:2]: path for path in ROOT.glob("labs/0*/")}


def reading_faults(page: Path) -> list:
    """The faults of a page whose tables name files, each with its number of lines."""
    text = page.read_text()
    faults, total = [], 0
    rows = re.findall(r"^\| \[`[^`]+`\]\(([^)]+)\) \| (\d+) \|", text, re.MULTILINE)
    if len(rows) != len(re.findall(r"^\| \[", text, re.MULTILINE)):
        faults.append("a row does not have the form | [`file`](file) | lines | why |")
    for link, said in rows:
        path = page.parent / link
        count = len(path.read_text().splitlines()) if path.is_file() else 0
        total += count
        if not is_near(int(said), count):
            faults.append(f"{link} has {count} lines, not {said}" if count else
                          f"{link} does not exist")
    said = re.search(r"They are ([\d,]+) lines", text)
    if not said or not is_near(int(said[1].replace(",", "")), total):
        faults.append(f"its files have {total} lines: write 'They are {total:,} lines'")
    return faults


def is_near(said: int, count: int) -> bool:
    return abs(said - count) <= count / 10


def main() -> int:
    wrong = 0
    for fault in reading_faults(ROOT / "docs/READ.md"):
        print(f"docs/READ.md: {fault}")
        wrong += 1
    for line in (ROOT / "docs/WHERE.md").read_text().splitlines():
        row = re.fullmatch(r"\| .* \| (\d\d|common|symm|tools)? ?((?:`[^`]+`(?:, )?)+) \| "
                           r"`([^`]+)` \|", line)
        if line.startswith("| ") and line != "| what | file | name |" and row is None:
            print(f"docs/WHERE.md: malformed row: {line}")
            wrong += 1
        if row is None:
            continue
        folder = LABS.get(row[1], ROOT / (row[1] or ""))
        files = [folder / name for name in re.findall(r"`([^`]+)`", row[2])]
        missing = [path for path in files if not path.is_file()]
        for path in missing:
            print(f"docs/WHERE.md: {path.relative_to(ROOT)} does not exist")
        if not missing and not all(row[3] in path.read_text() for path in files):
            print(f"docs/WHERE.md: {row[2]} does not contain {row[3]}")
            wrong += 1
        wrong += len(missing)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
