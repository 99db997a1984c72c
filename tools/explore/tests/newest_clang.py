#!/usr/bin/env python3
"""Explores with scenes that the newest clang of this Debian has compiled: what a compiler inserts
before an access differs from version to version. The explorer's own tests, and lab 04.

usage: newest_clang.py BUILD      a build by another clang, such as build/tsan
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "lab"))
from packages import install, output_of  # noqa: E402

TARGETS = ["litmus", "programs", "memory", "blocks", "streams", "cuda_kernel", "04"]
# What belongs to the other clang: precompiled headers, and its warnings as errors.
NOT_TAKEN = re.compile(r"-Winvalid-pch|-Xclang (-include-pch|-include) -Xclang \S+ ?|"
                       r"-Xclang -fno-pch-timestamp|-Werror\S*")


def newest() -> str:
    """Installs it if it is missing."""
    versions = re.findall(r"^clang-(\d+)$", output_of("apt-cache", "pkgnames", "clang-"), re.M)
    name = f"clang-{max(map(int, versions))}"
    install(name)
    return name.replace("clang", "clang++")


def explore(target: str, build: Path, compiler: str):
    commands = output_of("ninja", "-C", str(build), "-t", "commands", target).splitlines()
    [compiled] = [one for one in commands if re.search(rf"/{target}.dir/\S*.o -c ", one)]
    options, source = NOT_TAKEN.sub("", compiled.partition("clang++ ")[2]).split(" -c ")
    objects = f"{target}.{compiler}/"
    for folder in re.findall(rf"-o (\S*)/{target}.dir/", options):
        (build / folder / objects / "Unity").mkdir(parents=True, exist_ok=True)
    options = options.replace(f"{target}.dir/", objects)
    linked = commands[-1].replace(f"{target}.dir/", objects)
    program = f"bin/{target}_by_newest_clang"
    for command in (f"{compiler} {options} -c {source}",
                    linked.replace(f"-o bin/{target} ", f"-o {program} ")):
        subprocess.run(command, shell=True, cwd=build, check=True)
    subprocess.run([build / program], check=True)


def main(build: str):
    compiler = newest()
    for name in TARGETS:
        print(f"explore_{name}, compiled by {compiler}", flush=True)
        explore(f"explore_{name}", Path(build).resolve(), compiler)


main(*sys.argv[1:])
