#!/usr/bin/env python3
"""Draws the graph of folders from their includes, and checks that no folder includes a later one:
so no library of the labs or of common includes symm or tools, and symm does not include tools. A
lab's programs may include all folders of their lab, symm and tools, but no later lab. Skips tests,
scenes and examples: they may include everything.

    folders.py [--draw]"""

import re
import sys
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILDINGS = ("common", "labs", "symm", "tools")
# A floor is a folder, or patterns that match several (a|b*). Folders of one floor may include each
# other.
ORDER = """
common/sys common/simt common/driver common/emu|common/emu/* common/cuda
common/test_pattern common/bootstrap common/ranks common/nccl common/cli common/bench common/course
labs/01_vmm_alloc labs/02_access labs/03_ipc
labs/04_shm_transport/host_memory labs/04_shm_transport/connection labs/04_shm_transport/proxy
labs/04_shm_transport/transport labs/04_shm_transport/unpack_queue
labs/05_device_prims/reduction labs/05_device_prims labs/05_device_prims/ring
labs/05_device_prims/shared_work labs/05_device_prims/kernel_ways
labs/06_allreduce/algorithms/peer_slots
labs/06_allreduce/algorithms labs/06_allreduce/algorithms/mailbox
labs/06_allreduce/algorithms/one_shot
labs/06_allreduce/algorithms/sentinel labs/06_allreduce/algorithms/two_shot
labs/06_allreduce/algorithms/*
labs/06_allreduce/tuning labs/06_allreduce/communicator
labs/06_allreduce/few_stores labs/bugs_that_shipped
symm/nodes symm/include/symm symm/collectives symm/c symm/nccl
labs/05_device_prims/explore labs/06_allreduce/explore
tools tools/explore tools/trace tools/show tools/compare tools/compare/bench
tools/explore/foreign
""".split()
PROGRAMS = {"main.cpp", "bench.cpp"}
PROGRAM = " (program)"


def floor_of(source: str) -> int | None:
    """The number of a folder's floor; a program's is the last one of its lab or tool. None if ORDER
    does not have the folder."""
    folder = source.removesuffix(PROGRAM)
    if folder != source:
        folder = "/".join(folder.split("/")[:2])
        return max((number for number, floor in enumerate(ORDER)
                    if f"{floor}/".startswith(f"{folder}/")), default=None)
    return next((number for number, floor in enumerate(ORDER)
                 if any(fnmatch(folder, pattern) for pattern in floor.split("|"))), None)


def is_checked(path: Path) -> bool:
    """Whether a file is a part of a library, or a program."""
    parts = path.relative_to(ROOT).parts
    skipped = {"tests", "example", "examples", "linker_errors"}
    if parts[0] != "tools":
        skipped.add("explore")  # scenes
    return path.suffix in {".hpp", ".cpp", ".cu", ".h", ".c"} and not skipped & set(parts)


def included(text: str) -> list:
    """The headers of this repository that a file includes."""
    headers = re.findall(rf'#include ["<]((?:{"|".join(BUILDINGS)})/[^">]+)', text)
    return [header if (ROOT / header).exists() else f"symm/include/{header}" for header in headers]


def graph() -> dict:
    """The headers that one folder, or its program, includes from another, by (from, to)."""
    edges = defaultdict(set)
    for path in (path for part in BUILDINGS for path in ROOT.glob(f"{part}/**/*")):
        if not is_checked(path):
            continue
        source = path.parent.relative_to(ROOT).as_posix()
        if path.name in PROGRAMS:
            source += PROGRAM
        for header in included(path.read_text()):
            target = header.rpartition("/")[0]
            if target != source:
                edges[source, target].add(Path(header).name)
    return edges


def is_allowed(source: str, target: str) -> bool:
    is_of_lab = source.startswith("labs/") and source.endswith(PROGRAM)
    return floor_of(source) >= floor_of(target) or (
        is_of_lab and target.startswith(("symm/", "tools/")))


def main() -> int:
    edges = graph()
    unknown = {folder for edge in edges for folder in edge if floor_of(folder) is None}
    for folder in sorted(unknown):
        print(f"{folder}: add it to ORDER in docs/checks/folders.py")
    upward = [edge for edge in edges if not unknown & set(edge) and not is_allowed(*edge)]
    for source, target in upward:
        print(f"{source} includes the later {target}: {', '.join(sorted(edges[source, target]))}")
    if "--draw" in sys.argv[1:] and not unknown:
        for a, b in sorted(edges, key=lambda edge: (floor_of(edge[0]), floor_of(edge[1]), edge)):
            print(f"{a} -> {b}: {', '.join(sorted(edges[a, b]))}")
    return 1 if unknown or upward else 0


if __name__ == "__main__":
    sys.exit(main())
