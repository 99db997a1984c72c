"""Runs the commands that the front page and the labs' pages show, on emulated GPUs, and compares
their output with the pages. Numbers may differ; `...` on a page stands for any lines, or for the
rest of one."""

import os
import re
import shlex
import subprocess
from pathlib import Path

from tool import ROOT, Failure

COMMAND = re.compile(r"(?:[A-Z_0-9]+=\S+ +)*\./lab (?:run \d\d|trace)[^`\n]*")
LIMIT = 120  # seconds


def masked(text: str) -> list:
    """Its lines, with everything masked that differs between runs: numbers, addresses, widths."""
    lines = []
    for line in text.rstrip().splitlines():
        line = re.sub(r"\(libcuda.*? cannot be loaded\)|\(as requested\)", "(why)", line)
        line = re.sub(r"0x[0-9a-f]+(\.\.[0-9a-f]+)?|\d[\d.]*[KMG]?\b", "#", line)
        line = re.sub(r"(- ?)+", "-", re.sub(r"[=-]{2,}>?", "-", line))
        lines.append(" ".join(line.split()))
    return lines


def is_like(printed: str, line: str) -> bool:
    """Whether a printed line matches a line of a page, which may end with ` ...`."""
    return printed == line or line.endswith(" ...") and printed.startswith(line[:-4])


def first_difference(expected: list, printed: list) -> str:
    """The first difference between the page and the output; empty if there is none."""
    at, free = 0, False
    for line in expected:
        if line == "...":
            free = True
            continue
        begin = at
        while at < len(printed) and not is_like(printed[at], line):
            if not free:
                return f"the page shows\n    {line}\nbut the program prints\n    {printed[at]}"
            at += 1
        if at == len(printed):
            return (f"the page shows\n    {line}\nbut the program prints no such line after line "
                    f"{begin}")
        at, free = at + 1, False
    if at < len(printed) and not free:
        return f"the program also prints\n    {printed[at]}"
    return ""


def run(command: str) -> tuple[int, str, str]:
    """Runs a command of a page: its exit status, output and errors."""
    words = shlex.split(command, comments=True)
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_0-9]+=", word))
    words = [word for word in words if not re.match(r"[A-Z_0-9]+=", word)]
    environment = {**os.environ, "SYMM_DRIVER": "emulated", "SYMM_LAUNCHER": "none",
                   **variables}
    try:
        ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT,
                               env=environment, check=False)
    except subprocess.TimeoutExpired:
        return 124, "", f"did not finish within {LIMIT} s"
    return ended.returncode, ended.stdout, ended.stderr


def check(page: Path) -> list:
    """The faults of a page."""
    faults = []
    parts = re.split(r"^```\w*\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for text, block in zip(parts[:-1:2], parts[1::2], strict=True):
        before = " ".join(text.strip().split("\n\n")[-1].split())
        quoted = re.findall(rf"`({COMMAND.pattern})`", before)
        if quoted and text.strip().endswith(":"):
            print(f"  {quoted[-1]}", flush=True)
            _, output, errors = run(quoted[-1])
            difference = first_difference(masked(block), masked(output))
            if difference and first_difference(masked(block), masked(output + errors)):
                faults.append(f"{quoted[-1]}: {difference}")
            continue
        for command in COMMAND.findall(block):
            command = re.sub(r"(\./lab (?:run|trace).*?)  .*", r"\1", command)  # an explanation
            if re.search(r"GPU|NCCL|--graph|:1G|torchrun", command):
                continue
            print(f"  {command}", flush=True)
            status, output, errors = run(command)
            if status != 0 and not re.search("SYMM_EMU_|--silent", command):  # these may fail
                faults.append(f"{command}: exit status {status}\n{output[-500:]}{errors}")
    return faults


def main(args) -> int:
    wrong = 0
    unknown = set(args.nn) - {folder.name[:2] for folder in ROOT.glob("labs/0*/")}
    if unknown:
        raise Failure(f"there is no lab '{min(unknown)}'", 2)
    built = subprocess.run(["./lab", "build"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if built.returncode != 0:
        return built.returncode
    pages = sorted([*ROOT.glob("labs/*/*.md"), *ROOT.glob("labs/*/*/*.md"),
                    *ROOT.glob("symm/**/*.md"), *ROOT.glob("tools/**/*.md")])
    for page in [ROOT / "README.md", *pages, ROOT / "docs" / "DRIVER_CALLS.md"]:
        lab = page.relative_to(ROOT).parts[1:2]
        if args.nn and (not lab or lab[0][:2] not in args.nn):
            continue
        print(page.relative_to(ROOT), flush=True)
        for fault in check(page):
            print(f"MISMATCH: {fault}", flush=True)
            wrong += 1
    return 1 if wrong else 0
