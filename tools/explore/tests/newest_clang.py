#!/usr/bin/env python3
"""Explores with scenes that the newest clang of this Debian has compiled, since what a compiler
inserts before an access differs from version to version: the explorer's own tests, and lab 04. And
looks for accesses before which it has inserted nothing (unseen.py), in all scenes.

usage: newest_clang.py BUILD      a build by another clang, such as build/tsan
"""

import os
import re
import subprocess
import sys
from concurrent import futures
from pathlib import Path

from unseen import unseen

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "lab"))
from packages import install, newest_clang, output_of  # noqa: E402

RUN = ["litmus", "programs", "memory", "blocks", "streams", "cuda_kernel", "04"]
LOOKED_AT = ["04", "05", "ring", "06_mailbox_by_rule", "06_windows_by_rule", "06_ring_by_rule",
             "06_all_to_all", "06_rms_norm"]
DELIBERATE = {"back_off.hpp", "pack.hpp"}
# What belongs to the other clang: a launcher, precompiled headers, dependencies, errors.
NOT_TAKEN = re.compile(r"^.*?clang\+\+ |-Winvalid-pch|-Xclang -include(-pch)? -Xclang \S+ ?|"
                       r"-Xclang -fno-pch-timestamp|-Werror\S*|-MD -MT \S+ -MF \S+")


class Newest:
    """The newest clang, which compiles what `build` has compiled."""

    def __init__(self, build: Path):
        name = f"clang-{newest_clang()}"
        install(name)
        self.compiler = name.replace("clang", "clang++")
        self.build = build
        self.folder = build / "newest_clang"
        self.folder.mkdir(exist_ok=True)

    def run(self, command: str):
        subprocess.run(command, shell=True, cwd=self.build, check=True)

    def commands(self, target: str) -> list:
        return output_of("ninja", "-C", str(self.build), "-t", "commands", target).splitlines()

    def code(self, name: str) -> Path:
        """The LLVM code of an explorer's scenes, behind all passes."""
        target, file = f"explore_{name}", self.folder / f"{name}.ll"
        [compiled] = [one for one in self.commands(target)
                      if re.search(rf"/{target}.dir/\S*.o -c ", one)]
        options, source = re.sub(r"-o \S+", "", NOT_TAKEN.sub("", compiled)).split(" -c ")
        self.run(f"{self.compiler} {options} -S -emit-llvm -o {file} {source}")
        return file

    def explore(self, name: str, file: Path):
        target = f"explore_{name}"
        self.run(f"{self.compiler} -O1 -Xclang -disable-llvm-passes -c -o {file}.o {file}")
        program = self.folder / target
        linked = self.commands(target)[-1].replace(f"-o bin/{target} ", f"-o {program} ")
        self.run(re.sub(rf"[^\s=]+/{target}.dir/\S+\.o", f"{file}.o", linked))
        print(f"{target}, compiled by {self.compiler}", flush=True)
        self.run(str(program))

    def find_none(self, name: str, file: Path):
        found = {one for one in unseen(file.read_text(encoding="utf-8"))
                 if one.partition(":")[0] not in DELIBERATE}
        if found:
            sys.exit("\n".join([f"explore_{name} has accesses that no explorer sees:", *found]))

    def find_all(self):
        """Of unseen.cpp, whose comments say them."""
        source, file = HERE / "unseen.cpp", self.folder / "unseen.ll"
        self.run(f"{self.compiler} -O1 -g1 -fsanitize=thread -S -emit-llvm -o {file} {source}")
        lines = enumerate(source.read_text(encoding="utf-8").splitlines(), 1)
        expected = {f"unseen.cpp:{number}: {said[1]}" for number, line in lines
                    if (said := re.search(r"// unseen: (.*)", line))}
        found = unseen(file.read_text(encoding="utf-8"))
        if found != expected:
            sys.exit("\n".join(["of unseen.cpp, only found or only expected:",
                                *sorted(found ^ expected)]))


def main(build: str):
    newest = Newest(Path(build).resolve())
    newest.find_all()
    with futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        names = sorted({*LOOKED_AT, *RUN})
        codes = dict(zip(names, pool.map(newest.code, names), strict=True))
        list(pool.map(newest.find_none, LOOKED_AT, map(codes.get, LOOKED_AT)))
        list(pool.map(newest.explore, RUN, map(codes.get, RUN)))


main(*sys.argv[1:])
