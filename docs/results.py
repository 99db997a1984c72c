#!/usr/bin/env python3
"""Renders measured times from the JSON files in docs/results: a few tables for pages, all of them
for the site (docs/MEASURED.md).

usage: docs/results.py                     renders the pages' tables
       docs/results.py --check             only says what is not up to date, with exit status 1
       docs/results.py add FOLDER FILE...  takes files of `06_allreduce_bench --json` into
                                           docs/results/FOLDER (two_h200), without what no table
                                           needs, and of `06_allreduce --ladder --json`; and
                                           renders the pages' tables

A file has the rows of the benchmark, or `columns` and `rows` of any other measurement. Its
`context` has a title, the machine, the date and the command, and may have `nccl`, a `unit` and
`notes`. In a page, a comment stands above a table, with a line for each file:

    <!-- results.py
    rows: 1K, 1M, 1G
    two_h200/float_graph: algorithm, ours, NCCL
    two_h200/float_graph_unregistered: ours = ours in no window
    -->

Rows go by their first cell; without the first line, all rows of the first file are shown. Columns
may get another title. With the line `keep: 4` the table keeps its rows and its first four columns,
and gets the columns of those files that exist."""

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "results"
PAGES = [DOCS / "RESULTS.md", DOCS.parent / "labs/06_allreduce/README.md"]
MACHINES = {"two_h200": "two H200s", "four_h200": "four H200s", "eight_h200": "eight H200s",
            "two_h100": "two H100s", "four_h100": "four H100s"}
NAMES = {"oneshot": "packets", "twoshot": "two shots", "copy": "copy engine"}
HALVES = {"oneshot": "packets", "twoshot": "windows", "copy": "copies"}  # RS and AllGather
# The benchmark's columns: title, key, digits.
COLUMNS = [("ours", "out_us", 1), ("bus", "out_busbw", 1), ("NCCL", "out_nccl_us", 1),
           ("NCCL symmetric", "out_nccl_symmetric_us", 1), ("speedup", "out_ratio", 2),
           ("in place", "in_us", 1), ("speedup in place", "in_ratio", 2)]
NEEDED = re.compile("run_type|bytes|label|blocks|(out|in)_(us|busbw|ratio|nccl(_symmetric)?_us)")
COMMENT = re.compile(r"^<!-- results.py\n((?:\S+: .*\n)+)-->\n((?:\|.*\n)*)", re.MULTILINE)


def size(count: float) -> str:
    unit = next(power for power in (3, 2, 1, 0) if count % 1024**power == 0)
    return f"{count / 1024**unit:.0f}{' KMG'[unit].strip()}"


def number(value, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class Measurement:
    """A file: its context, the titles of its columns, and its rows as text."""

    def __init__(self, name: str):
        text = (FOLDER / f"{name}.json").read_text()
        found = json.loads(text)
        self.context = found["context"]
        if missing := {"title", "machine", "date", "command"} - self.context.keys():
            sys.exit(f"docs/results/{name}.json: its context lacks {', '.join(sorted(missing))}")
        if "benchmarks" not in found:
            found = json.loads(text, parse_float=str, parse_int=str)  # as many digits as measured
            self.columns = found["columns"]
            self.rows = [["-" if cell is None else cell for cell in row] for row in found["rows"]]
            return
        measured = [row for row in found["benchmarks"] if row.get("run_type") != "aggregate"]
        ways = NAMES if self.context["title"].startswith("AllReduce") else HALVES
        shown = [column for column in COLUMNS if any(column[1] in row for row in measured)]
        self.columns = ["bytes", "algorithm", "blocks", *(title for title, _, _ in shown)]
        self.rows = [[size(row["bytes"]), ways.get(row["label"], row["label"]),
                      number(row["blocks"], 0),
                      *(number(row.get(key), digits) for _, key, digits in shown)]
                     for row in measured]

    def column(self, title: str) -> dict:
        """The cells of a column, by the first cell of their row."""
        if title not in self.columns:
            sys.exit(f"'{self.context['title']}' has no column '{title}': {self.columns}")
        at = self.columns.index(title)
        return {row[0]: row[at] for row in self.rows}


def times() -> dict:
    """Times of an AllReduce of floats in a graph, in us: by ranks, algorithm and bytes; and as
    `best`, by ranks and bytes, what the library chooses, its time, and NCCL's."""
    found = {}
    for ranks, machine in ((2, "two_h200"), (4, "four_h200"), (8, "eight_h200")):
        by_algorithm, best = {}, {}
        names = sorted((FOLDER / machine).glob("only_*.json"))
        for path in [*names, FOLDER / machine / "float_graph_newest_nccl.json"]:
            for row in json.loads(path.read_text())["benchmarks"]:
                bytes_, ours = int(row["bytes"]), f"{row['out_us']:.1f}"
                by_algorithm.setdefault(row["label"], {})[bytes_] = ours
                if "out_nccl_symmetric_us" in row:
                    best[bytes_] = {"ours": ours, "nccl": f"{row['out_nccl_symmetric_us']:.1f}",
                                    "algorithm": row["label"]}
        found[ranks] = by_algorithm | {"best": best}
    return found


def table(titles: list, rows: list) -> str:
    def line(cells):
        return "| " + " | ".join(cells) + " |\n"

    texts = [any(not re.fullmatch(r"-|[\d.]+[KMG%x]?", row[at]) for row in rows)
             for at in range(len(titles))]
    return (line(titles) + "|" + "|".join("---" if text else "---:" for text in texts) + "|\n" +
            "".join(map(line, rows)))


def chosen(lines: str, old: str) -> str:
    """The table of a page's comment, in place of an old one."""
    titles, columns, keys, kept = [], [], [], []
    for name, words in re.findall("(.*?): (.*)", lines):
        if name == "keep":
            titles, _, *kept = [line.strip("| ").split(" | ")[:int(words)]
                                for line in old.splitlines()]
            keys = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row[0]) for row in kept]  # without a link
            continue
        if kept and not (FOLDER / f"{name}.json").exists():
            continue
        if name == "rows":
            keys = words.split(", ")
            continue
        measured = Measurement(name)
        titles = titles or [measured.columns[0]]
        keys = keys or [row[0] for row in measured.rows]
        for word in words.split(", "):
            own, _, title = word.partition(" = ")
            columns.append(measured.column(own))
            titles.append(title or own)
    if missing := [key for key in keys if columns and all(key not in c for c in columns)]:
        sys.exit(f"no file has these rows: {missing}")
    kept = kept or [[key] for key in keys]
    return table(titles, [[*row, *(column.get(key, "-") for column in columns)]
                          for key, row in zip(keys, kept, strict=True)])


def everything() -> str:
    """All files, as sections of a page in docs."""
    text = ""
    for folder, machine in MACHINES.items():
        text += f"\n## {capital(machine)}\n"
        for file in sorted((FOLDER / folder).glob("*.json")):
            measured = Measurement(f"{folder}/{file.stem}")
            context = measured.context
            facts = [capital(context["machine"]), context["date"][:10],
                     *(f"NCCL {nccl}" for nccl in [context.get("nccl")] if nccl),
                     *(f"in {unit}" for unit in [context.get("unit")] if unit)]
            command = context["command"]
            command = command if command.startswith("a program") else f"`{command}`"
            text += (f"\n### {context['title']}\n\n{', '.join(facts)}: {command} "
                     f"([`{file.name}`](results/{folder}/{file.name})).\n\n" +
                     "".join(f"{note}\n\n" for note in context.get("notes", [])) +
                     table(measured.columns, measured.rows))
    return text


def add(folder: str, *files: str) -> None:
    if folder not in MACHINES:
        sys.exit(f"there is no machine '{folder}': use one of {', '.join(MACHINES)}, "
                 "or add it to docs/results.py")
    for file in map(Path, files):
        measured = json.loads(file.read_text())
        context = measured["context"]
        if context["emulated"] != "no":
            sys.exit(f"{file}: these GPUs were emulated, so its times are not performance figures")
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
        if "rows" in measured:
            measured["context"]["machine"] = MACHINES[folder]
            (FOLDER / folder / file.name).write_text(json.dumps(measured) + "\n")
            continue
        kept = [{key: round(value, 3) if isinstance(value, float) else value
                 for key, value in row.items() if NEEDED.fullmatch(key)}
                for row in measured["benchmarks"]]
        how = "in a graph" if "graph launch" in context["options"] else "launched one by one"
        kept_context = {"title": f"{context['collective']}, {context['datatype']}, {how}",
                        "machine": MACHINES[folder],
                        **{key: context[key]
                           for key in ("date", "command", "driver", "options", "nccl")}}
        text = ",\n".join(json.dumps(row) for row in kept)
        (FOLDER / folder / file.name).write_text(
            f'{{"context": {json.dumps(kept_context)},\n"benchmarks": [\n{text}\n]}}\n')


def rendered(page: str) -> str:
    return COMMENT.sub(lambda found: f"<!-- results.py\n{found[1]}-->\n"
                       f"{chosen(*found.groups())}", page)


def main(*arguments: str) -> int:
    if arguments[:1] == ("add",) and len(arguments) > 2:
        add(*arguments[1:])
    elif arguments not in ((), ("--check",)):
        print(__doc__, file=sys.stderr)
        return 2
    everything()  # every file can be rendered
    stale = False
    for page in PAGES:
        old = page.read_text()
        new = rendered(old)
        if arguments != ("--check",):
            page.write_text(new)
        elif new != old:
            stale = True
            for line in [line for line in new.splitlines() if line not in old.splitlines()][:3]:
                print(f"{page.relative_to(DOCS.parent)} is not up to date: {line}")
    return stale


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
