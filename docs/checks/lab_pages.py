#!/usr/bin/env python3
"""Checks the form of the labs' pages: the sections and their order, and that each row of "The
essential lines" names parts that exist in its file, and their approximate number of lines. Checks
that a header of a protocol begins with a few lines that say what it does: proofs are for pages."""

import re
import sys
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["Before this lab", "Goal", "Background", "Words", "The essential lines",
            "A walk through the code", "Exercises", "Run it", "Expected output",
            "What can go wrong", "How NCCL does it", "Going further"]
ROW = re.compile(r"\| \[`[^`]+`\]\(([^)]+)\) \| ([^|]+) \| (\d+) \|")
HEAD = "the comment at its top"
SUM_MIN, SUM_MAX = 100, 250
BRIEF = ["labs/04_*", "labs/05_*", "labs/06_*", "symm/collectives"]  # folders of protocols
HEAD_MAX = 10  # lines of a header's first comment, without `\file`
BEGUN = r"// exercise [\d.]+ begins"  # a stub of the course, with fewer lines


def is_close(said: int, counted: int) -> bool:
    return abs(said - counted) <= max(3, counted // 5)


def head(lines: list) -> set:
    """The lines of the comment at the start of a file."""
    begin = next(i for i, line in enumerate(lines) if line.startswith("//"))
    end = begin
    while lines[end].startswith("//"):
        end += 1
    return set(range(begin, end))


def extent(lines: list, at: int) -> tuple[range, bool]:
    """The lines of the declaration that starts at line `at`, and whether it has a body."""
    indent = re.match(" *", lines[at])[0]
    for i in range(at, len(lines)):
        code = lines[i].split(" //")[0].rstrip()
        if code.endswith("{"):
            end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith(indent + "}"))
            return range(at, end + 1), True
        if code.endswith((";", "}")):
            return range(at, i + 1), code.endswith("}")
    return range(at, at + 1), False


def find(lines: list, name: str, inside: range) -> set:
    """The lines of a function or type and the comment above it. Empty if there is none."""
    *outer, last = name.split("::")
    is_constructor = outer[-1:] == [last]
    types = r"(?:[\w:<>,*&\[\]]+ +)" + ("*" if is_constructor else "+") + "[*&]*"
    called = re.escape(name if any(name + "(" in lines[i] for i in inside) else last)
    function = rf" *(?!return |throw |else |//|#){types}{called}\("
    begins = re.compile(function if is_constructor else
                        rf"{function}| *(?:struct|class|enum class) {re.escape(name)}(?= |$)")
    if called == last and outer:  # a member defined in its class
        body = find(lines, "::".join(outer), inside)
        inside = range(min(body) + 1, max(body)) if body else range(0)
    found = [extent(lines, at) for at in inside if begins.match(lines[at])]
    wanted = [part for part, has_body in found if has_body] or [part for part, _ in found]
    numbers = set()
    for part in wanted:
        first = part.start
        while re.match(r" *(//|template)", lines[first - 1]):
            first -= 1
        numbers.update(range(first, part.stop))
    return numbers


def check_rows(page: Path, text: str) -> list:
    """The faults of a page's table of essential lines."""
    faults = []
    section = text.split("\n## The essential lines\n")[1].split("\n## ")[0]
    rows = ROW.findall(section)
    if len(rows) != len(re.findall(r"^\| \[", section, re.MULTILINE)):
        faults.append("a row does not have the form | [`file`](file) | parts | lines | sentence |")
    total = 0
    for file, parts, said in rows:
        path = page.parent / file
        if not path.is_file():
            faults.append(f"{file} does not exist")
            continue
        source = re.sub(r"(\w+)<[\w, ]+>::(?=\w+\()", r"\1::", path.read_text())  # of a template
        lines = source.splitlines()
        numbers = head(lines) if HEAD in parts else set()
        for name in re.findall("`([^`]+)`", parts):
            part = find(lines, name, range(len(lines)))
            if not part:
                faults.append(f"{file} has no function or part `{name}`")
            numbers |= part
        if not numbers:
            faults.append(f"the row of {file} names no part: add `a_function`, or {HEAD}")
        elif not is_close(int(said), len(numbers)) and not re.search(BEGUN, "\n".join(lines)):
            faults.append(f"{parts} of {file}: {len(numbers)} lines, not {said}")
        total += len(numbers)
    said = re.search(r"About (\d+) lines", section)
    if not said or not is_close(int(said[1]), total):
        faults.append(f"there are {total} essential lines: write 'About {total} lines'")
    if not SUM_MIN <= total <= SUM_MAX:
        faults.append(f"there are {total} essential lines: choose {SUM_MIN} to {SUM_MAX}")
    return faults


def check(page: Path) -> list:
    """The faults of a lab's page."""
    text = page.read_text()
    outside_blocks = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall("^## (.*)$", outside_blocks, re.MULTILINE)
    missing = [title for title in SECTIONS if title not in titles]
    if missing:
        return [f"the section '{title}' is missing" for title in missing]
    order = [title for title in titles if title in SECTIONS]
    if order != SECTIONS:
        wrong = next(one for one, other in zip_longest(order, SECTIONS) if one != other)
        return [f"the section '{wrong}' is out of order. The order: {', '.join(SECTIONS)}"]
    return check_rows(page, text)


def check_head(header: Path) -> list:
    """The fault of a header whose first comment is too long, or none."""
    lines = header.read_text().splitlines()
    count = len([at for at in head(lines) if not lines[at].endswith("\\file")])
    return [] if count <= HEAD_MAX else [
        f"its first comment has {count} lines: say in {HEAD_MAX} what it does, in steps. A proof, "
        "or a long table, is for the page of its folder"]


def main() -> int:
    pages = sorted(ROOT.glob("labs/0*/README.md"))
    headers = sorted(header for folder in BRIEF for header in ROOT.glob(f"{folder}/**/*.hpp"))
    faults = [f"{path.relative_to(ROOT)}: {fault}" for paths, of in ((pages, check),
              (headers, check_head)) for path in paths for fault in of(path)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
