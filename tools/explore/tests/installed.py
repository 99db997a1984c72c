"""Installs the explorer, and explores the example as a project of its own: as it is, with each of
some faults, which the first execution must find, and with what the explorer refuses.

usage: installed.py BUILD EXAMPLE COMPILER
"""

import pathlib
import re
import shutil
import subprocess
import sys

FAULTS = [
    ("the sums are not published", ["store(call, cuda::memory_order_release)",
                                    "store(call, cuda::memory_order_relaxed)"],
     r"data race on r\d.sums"),
    ("the sums are not acquired", ["summed[b][t]).load(cuda::memory_order_acquire)",
                                   "summed[b][t]).load(cuda::memory_order_relaxed)"],
     r"data race on r\d.sums"),
    ("a thread does not wait for the sums of its block",
     ["ranks.sums[me][i] = sum;\n    }\n    __syncthreads();", "ranks.sums[me][i] = sum;\n    }"],
     r"data race on r\d.sums"),
    ("calls are not counted", ["ranks.flags[me]->calls[b] = call;", ""], "a sum is wrong"),
]
REFUSED = [
    (["if (t < ranks.count) {", "__threadfence(); if (t < ranks.count) {"],
     "the explorer knows no scope but the system's: use __threadfence_system"),
    (["if (t < ranks.count) {", "if (rand() % 7 != 3 && t < ranks.count) {"],
     r"explorer\s+would\s+not\s+see:\s+rand"),
    (["if (t < ranks.count) {", "if (t == 99) { throw t; } if (t < ranks.count) {"],
     r"not\s+see:\s+throw\s+\(__cxa_throw\)"),
    (["cuda::thread_scope_system", "cuda::thread_scope_device"],
     "refused_the_explorer_knows_only_thread_scope_system"),
]


def run(*command, code=0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if code is not None and done.returncode != code:
        sys.exit(f"{command} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def explore(folder: pathlib.Path, code: int) -> str:
    run("cmake", "--build", str(folder / "build"))
    return run(str(folder / "build/explore_all_reduce"), code=code)


def expect(pattern: str, text: str, what: str):
    if not re.search(pattern, text, re.DOTALL):
        sys.exit(f"{what}: '{pattern}' is not in\n{text}")


def main(build: str, example: str, compiler: str):
    folder = pathlib.Path("explore_installed").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(example, folder)
    run("cmake", "--install", build, "--component", "explore", "--prefix", str(folder / "prefix"))
    configure = ["cmake", "-S", str(folder), f"-DCMAKE_PREFIX_PATH={folder}/prefix", "-B"]
    expect("explorer needs\\s+clang.*GNU",
           run(*configure, str(folder / "gcc"), "-DCMAKE_CXX_COMPILER=g++", code=1), "with g++")
    run(*configure, str(folder / "build"), f"-DCMAKE_CXX_COMPILER={compiler}")
    expect(r"(all_reduce/[0-9x]+ +end +\d+ +1 [^\n]*exhausted\n){3}", explore(folder, 0),
           "unchanged")
    run("python3", "-B", str(pathlib.Path(__file__).with_name("replay.py")),
        str(folder / "build/explore_all_reduce"), "all_reduce/2x2")
    kernel = folder / "all_reduce.cuh"
    right = kernel.read_text(encoding="utf-8")
    for fault, (old, new), report in FAULTS:
        if right.count(old) != 1:
            sys.exit(f"{fault}: its text does not occur once in {kernel.name}")
        kernel.write_text(right.replace(old, new), encoding="utf-8")
        expect(rf"2x2 +end +4 +1 [^\n]*WRONG.*all_reduce.cuh:\d.*=> {report}", explore(folder, 1),
               fault)
    for (old, new), message in REFUSED:
        kernel.write_text(right.replace(old, new), encoding="utf-8")
        expect(message, run("cmake", "--build", str(folder / "build"), code=None), new)


main(*sys.argv[1:])
