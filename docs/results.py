#!/usr/bin/env python3
"""Renders the tables of docs/RESULTS.md from the JSON files in docs/results.

usage: docs/results.py                     renders the tables
       docs/results.py --check             only says what is not up to date, with exit status 1
       docs/results.py add FOLDER FILE...  takes files of `06_allreduce_bench --json` into
                                           docs/results/FOLDER, without what no table needs, and
                                           renders the tables

In the page, a comment stands above each such table: `<!-- results.py: calls two_h200/float_graph
-->`. The first word is a function below, the others are its arguments."""

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "RESULTS.md"
WAYS = {"oneshot": "packets", "twoshot": "windows", "copy": "copies"}
NAMES = {"oneshot": "packets", "twoshot": "two shots", "copy": "copy engine"}
COLUMNS = [("ours", "out_us", 1), ("bus", "out_busbw", 1), ("NCCL", "out_nccl_us", 1),
           ("NCCL symmetric", "out_nccl_symmetric_us", 1), ("speedup", "out_ratio", 2),
           ("in place", "in_us", 1), ("speedup", "in_ratio", 2)]
HEADER = DOCS.parent / "labs/06_allreduce/algorithms/algorithm.hpp"
ALGORITHMS = re.findall(r'"([a-z]+)"', HEADER.read_text())
NEEDED = re.compile("run_type|bytes|label|blocks|(out|in)_(us|busbw|ratio|nccl(_symmetric)?_us)")


def rows(name: str) -> dict:
    """The rows of a file, by bytes."""
    found = json.loads((DOCS / f"results/{name}.json").read_text())["benchmarks"]
    return {row["bytes"]: row for row in found if row.get("run_type") != "aggregate"}


def size(count: float) -> str:
    unit = next(power for power in (3, 2, 1, 0) if count % 1024**power == 0)
    return f"{count / 1024**unit:.0f}{' KMG'[unit].strip()}"


def number(value, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def table(head: str, body: list) -> list:
    """`head` has the names of the columns; those of text begin with `:`."""
    names = head.split("|")
    return ["| " + " | ".join(name.lstrip(":") for name in names) + " |",
            "|" + "|".join("---" if name[0] == ":" else "---:" for name in names) + "|",
            *("| " + " | ".join(row) + " |" for row in body)]


def way(row: dict) -> str:
    return NAMES.get(row["label"], row["label"])


def calls(name: str) -> list:
    """Our AllReduce and NCCL's two. A column that no row has is left out."""
    measured = list(rows(name).values())
    columns = [column for column in COLUMNS if any(column[1] in row for row in measured)]
    return table("bytes|:algorithm|blocks|" + "|".join(column[0] for column in columns), [
        [size(row["bytes"]), way(row), number(row["blocks"], 0)]
        + [number(row.get(key), digits) for _, key, digits in columns] for row in measured])


def halves(folder: str, which: str = "graph") -> list:
    """A ReduceScatter and an AllGather, with NCCL's two."""
    def cells(row: dict) -> list:
        return [WAYS.get(row["label"], row["label"]),
                *(number(row.get(f"out_{key}us"), 1) for key in ("", "nccl_", "nccl_symmetric_")),
                number(row.get("out_ratio"), 2), number(row.get("in_ratio"), 2)]

    scatter, gather = (rows(f"{folder}/{name}_{which}") for name in ("reducescatter", "allgather"))
    return table("bytes|:way|RS|NCCL|sym|speedup|in place|:way|AG|NCCL|sym|speedup|in place", [
        [size(count), *cells(scatter[count]), *cells(gather[count])] for count in scatter])


def blocks(folder: str, most: str) -> list:
    """Our AllReduce with few blocks, and with all."""
    few, full = rows(f"{folder}/float_graph_{most}_blocks"), rows(f"{folder}/float_graph")
    return table(f"bytes|:algorithm|{most} blocks|bus|all|of all blocks' bandwidth|speedup", [
        [size(count), way(row), number(row["out_us"], 1), number(row["out_busbw"], 1),
         number(full[count]["out_us"], 1),
         number(100 * row["out_busbw"] / full[count]["out_busbw"], 0) + " %",
         number(row.get("out_ratio"), 2)]
        for count, row in few.items()])


def alone(folder: str) -> list:
    """Each algorithm that was measured alone, and NCCL's default path, in us."""
    names = [name for name in ALGORITHMS if (DOCS / f"results/{folder}/only_{name}.json").exists()]
    ours = [rows(f"{folder}/only_{name}") for name in names]
    nccl = rows(f"{folder}/float_graph")
    titles = [NAMES.get(name, name) for name in names]
    return table("bytes|" + "|".join([*titles, "NCCL"]), [
        [size(count), *(number(column.get(count, {}).get("out_us"), 1) for column in ours),
         number(nccl.get(count, {}).get("out_nccl_us"), 1)]
        for count in sorted(set().union(*ours))])


def add(folder: str, *files: str) -> None:
    target = DOCS / "results" / folder
    target.mkdir(parents=True, exist_ok=True)
    for file in map(Path, files):
        measured = json.loads(file.read_text())
        kept = [{key: round(value, 3) if isinstance(value, float) else value
                 for key, value in row.items() if NEEDED.fullmatch(key)}
                for row in measured["benchmarks"]]
        context = {key: measured["context"][key] for key in ("date", "driver", "options", "nccl")}
        text = ",\n".join(json.dumps(row) for row in kept)
        (target / file.name).write_text(
            f'{{"context": {json.dumps(context)},\n"benchmarks": [\n{text}\n]}}\n')


def rendered(page: str) -> str:
    forms = {form.__name__: form for form in (calls, halves, blocks, alone)}
    lines = []
    skipping = False
    for line in page.splitlines():
        skipping = skipping and line.startswith("|")
        if not skipping:
            lines.append(line)
        if found := re.fullmatch(r"<!-- results.py: (\w+) (.*) -->", line):
            lines += forms[found[1]](*found[2].split())
            skipping = True
    return "\n".join(lines) + "\n"


def main(*arguments: str) -> int:
    if arguments[:1] == ("add",) and len(arguments) > 2:
        add(*arguments[1:])
    elif arguments not in ((), ("--check",)):
        print(__doc__, file=sys.stderr)
        return 2
    old = PAGE.read_text()
    new = rendered(old)
    if arguments == ("--check",):
        wrong = [line for line in new.splitlines() if line not in old.splitlines()]
        print("".join(f"docs/RESULTS.md is not up to date: {line}\n" for line in wrong[:3]), end="")
        return new != old
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
