#!/usr/bin/env python3
"""Checks docs/WHERE.md: each row's files exist, and contain the row's name."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LABS = {path.name[:2]: path for path in ROOT.glob("labs/0*/")}


def main() -> int:
    wrong = 0
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
