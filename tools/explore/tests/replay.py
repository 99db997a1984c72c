#!/usr/bin/env python3
"""Records an execution of each protocol, and replays it from its JSON: each plain load must find
what the cells hold, and each atomic load must be one of its choices. Exit status 0 if so.

usage: replay.py PROGRAM PROTOCOL...
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def replay(recorded: dict):
    """Raises AssertionError where a step does not fit."""
    cells = [cell["first"] for cell in recorded["cells"]]
    for number, step in enumerate(recorded["steps"]):
        where = f"{recorded['protocol']}, step {number}: {step}"
        for access in step["cells"]:
            if step["what"] == "plain load":
                assert access["value"] == cells[access["cell"]], where
            elif step["what"].endswith("store"):
                cells[access["cell"]] = access["value"]
        if step["what"] == "load":
            assert {"step": step["from"], "value": step["value"]} in step["choices"], where
            assert all(choice["step"] < number for choice in step["choices"]), where


def main(program: str, *protocols: str):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recorded.json"
        subprocess.run([program, *protocols, "--record", file], stdout=subprocess.DEVNULL,
                       check=True)
        for line in file.read_text().splitlines():
            recorded = json.loads(line)
            assert recorded["steps"], f"{recorded['protocol']} has no steps"
            replay(recorded)


main(*sys.argv[1:])
