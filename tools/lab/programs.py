"""Builds programs and runs them: the labs', their benchmarks, the explorers, the trace."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import builds
import tool
from builds import build_chosen, chosen, start
from labs import lab_named
from packages import install, output_of
from tool import Failure, become


def run(args):
    lab = lab_named(args.nn)
    start(chosen(args.preset), f"{build_chosen(args, lab)}/{lab}", *args.arguments)


#: Algorithms that ./lab bench makes a shared object of.
OWN = sorted(path.stem for path in (tool.ROOT / "symm/examples").glob("*.cu"))


def bench(args):
    own = args.nn if args.nn in OWN else ""
    program = f"{lab_named('06' if own else args.nn)}_bench"
    preset = chosen(args.preset)
    if preset.endswith("san") or preset == "aarch64":
        raise Failure(f"preset {preset} has no benchmarks: times under "
                      f"{'qemu' if preset == 'aarch64' else 'a sanitizer'} mean nothing", 2)
    bench = f"{build_chosen(args, program, *[f'symm_{own}'] * bool(own))}/{program}"
    if own:
        os.environ["SYMM_ALGORITHMS"] = os.path.abspath(f"build/{preset}/lib/libsymm_{own}.so")
        os.environ["SYMM_ALGO"] = own
    if program != "06_allreduce_bench" or "--json" in args.arguments:
        become(bench, *args.arguments)
    rows = Path(f"build/{preset}/06_allreduce.json")
    rows.unlink(missing_ok=True)
    status = subprocess.run([bench, "--json", rows, *args.arguments], check=False).returncode
    if status == 0 and rows.exists() and rows.stat().st_size:  # there are none after --help
        draw(rows)
    return status


def plot(args):
    rows = tool.caller / args.file
    if not rows.is_file() or not rows.stat().st_size:
        raise Failure(f"there is no file '{args.file}'", 2)
    draw(rows)


def draw(rows: Path):
    """Draws the curves of a file of 06_allreduce_bench --json."""
    if '"emulated": "yes"' in rows.read_text():
        print(f"{rows}: nothing is drawn, because these GPUs were emulated")
        return
    install("gnuplot-nox", "jq")
    rows = rows.resolve()
    drawing = str(rows).removesuffix(".json")
    if subprocess.run(["gnuplot", "-c", "tools/compare/bench/plot.gp", drawing], check=False,
                      env={**os.environ, "ROWS": str(rows)}).returncode != 0:
        raise Failure(f"could not draw {rows}")
    for picture in sorted(rows.parent.glob(f"{Path(drawing).name}_*.svg")):
        print(picture)


def trace(args):
    """NCCL's calls are recorded on GPUs: 06_allreduce_trace --record."""
    recordings = sorted(map(str, Path("docs/driver_calls").glob("nccl_*.txt")))
    if args.step == "changes":
        status = subprocess.run(["diff", "-U1", *recordings], check=False).returncode
        if status == 0:
            print("(no changes)")
        return 0 if status == 1 else status
    program = f"{build_chosen(args, '06_allreduce_trace')}/06_allreduce_trace"
    start(chosen(args.preset), program, "--recording", recordings[-1],
          *([args.step] if args.step else []), *args.arguments)


def scenes_of(source: Path) -> str:
    """The texts that name an explorer's scenes: of its source, and of its headers of that kind."""
    text = source.read_text()
    headers = re.findall(r'#include "(\S*explore/\S+\.hpp)"', text)
    return text + "".join(Path(header).read_text() for header in headers)


def explore(args):
    """Needs clang, whose -fsanitize=thread inserts a call before each access."""
    only, label = args.what or "", r"\w+"
    if re.fullmatch("0[456]", only):
        only, label = "", f"lab{only}"
    programs = [(name, path.parent / source)
                for path in (*sorted(Path("labs").glob("*/CMakeLists.txt")),
                             Path("symm/CMakeLists.txt"),
                             Path("tools/explore/foreign/CMakeLists.txt"))
                for name, source in re.findall(
                    rf"^symm_exploration\((\S+) {label} SOURCES ([^\s)]+)", path.read_text(), re.M)]
    # Those that can have such a protocol; without any, all are asked.
    names = [name for name, source in programs if f'"{only.partition("/")[0]}' in scenes_of(source)]
    names = names or [name for name, _ in programs]
    if re.fullmatch(r"\d+\.\d+/\d+", only):  # an exercise's answer
        names = ["values"]
    builds.build("tsan", *(f"explore_{name}" for name in names))
    wanted = [only] if only else []
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "recording")
        is_shown = args.step or args.browser
        record = ["--record", recording, "--executions", "20000"] if is_shown else []
        status, found = 0, False
        for name in names:
            program = f"build/tsan/bin/explore_{name}"
            listed = output_of(program, "--list").splitlines()
            if any(line.startswith(only) for line in listed):
                found = True
                status = max(status, subprocess.run([program, *wanted, *record, *args.arguments],
                                                    check=False).returncode)
                if status != 0 and "--go-on" not in args.arguments:
                    break
        if not found:
            raise Failure(f"there is no protocol '{only}': ./lab explore -- --list lists them", 2)
        if is_shown and recording.exists() and recording.stat().st_size:
            import terminal
            with recording.open(encoding="utf-8") as rows:
                terminal.show([*map(json.loads, rows)], args.browser)
    return status
