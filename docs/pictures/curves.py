#!/usr/bin/env python3
"""Draws the curves of an AllReduce from tables of docs/RESULTS.md, as `./lab plot` draws them from
the benchmark's own JSON.

usage: docs/pictures/curves.py
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {"Four H200s, float, sum": (4, "four_h200"),
            "Eight H200s, float, sum": (8, "eight_h200")}
UNITS = {"K": 10, "M": 20, "G": 30}


def rows(section: str) -> dict:
    """The first table of a section, as 06_allreduce_bench --json writes it."""
    ranks, _ = PICTURES[section]
    text = (ROOT / "docs/RESULTS.md").read_text().split(f"\n### {section}\n")[1]
    table = text.partition("\n| bytes |")[2].partition("\n\n")[0]
    benchmarks = []
    for size, unit, ours, nccl, symmetric in re.findall(
            r"\| (\d+)([KMG]) \| [\w ]+ \| \d+ \| (\S+) \| \S+ \| (\S+) \| (\S+) \|", table):
        benchmarks.append({"run_type": "iteration", "bytes": int(size) << UNITS[unit],
                           "ranks": ranks, "out_us": float(ours), "out_nccl_us": float(nccl),
                           "out_nccl_symmetric_us": float(symmetric)})
    return {"benchmarks": benchmarks,
            "context": {"collective": "AllReduce", "datatype": "float", "op": "sum",
                        "nccl": re.search(r"NCCL ([\d.]+),", text)[1]}}


if __name__ == "__main__":
    for title, (_, name) in PICTURES.items():
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(rows(title), file)
            file.flush()
            subprocess.run(["gnuplot", "-c", "labs/06_allreduce/comparison/bench/plot.gp",
                            f"docs/pictures/{name}"], cwd=ROOT, check=True,
                           env={**os.environ, "ROWS": file.name})
