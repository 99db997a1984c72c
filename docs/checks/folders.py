#!/usr/bin/env python3
"""Draws the graph of folders from their includes, and checks that no folder includes a later one.
Skips tests, scenes, programs and benchmarks: they may include everything.

    folders.py [--draw]"""

import re
import sys
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A floor is a folder, or patterns that match several (a|b*). Folders of one floor may include each
# other.
ORDER = """
common/sys common/simt common/driver common/emu|common/emu/* common/cuda
common/test_pattern common/bootstrap common/ranks common/nccl common/cli common/bench
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
labs/06_allreduce/halves labs/06_allreduce/tuning labs/06_allreduce/communicator
labs/06_allreduce/your_own
labs/06_allreduce/c_api labs/06_allreduce/drop_in labs/06_allreduce/machines
labs/06_allreduce/few_stores labs/bugs_that_shipped
tools/explore tools/trace tools/show tools/compare tools/compare/bench
""".split()
PARTS = ("common", "labs", "tools")
PROGRAMS = {"main.cpp", "bench.cpp", "tune.cpp", "timeline.cpp", "driver_calls.cpp"}


def floor_of(folder: str) -> int | None:
    """The number of a folder's floor; None if ORDER does not have it."""
    return next((number for number, floor in enumerate(ORDER)
                 if any(fnmatch(folder, pattern) for pattern in floor.split("|"))), None)


def is_checked(path: Path) -> bool:
    """Whether a file is a part of a library."""
    parts = path.relative_to(ROOT).parts
    skipped = {"tests", "example", "linker_errors"} | ({"explore"} if parts[0] == "labs" else set())
    return path.suffix in {".hpp", ".cpp", ".cu"} and path.name not in PROGRAMS and \
        not skipped & set(parts)


def graph() -> dict:
    """The headers that one folder includes from another, by (from, to)."""
    edges = defaultdict(set)
    for path in (path for part in PARTS for path in ROOT.glob(f"{part}/**/*")):
        if is_checked(path):
            source = path.parent.relative_to(ROOT).as_posix()
            for header in re.findall(r'#include "((?:common|labs|tools)/[^"]+)"', path.read_text()):
                target = header.rpartition("/")[0]
                if target != source:
                    edges[source, target].add(Path(header).name)
    return edges


def main() -> int:
    edges = graph()
    place = {folder: floor_of(folder) for edge in edges for folder in edge}
    unknown = {folder for folder, floor in place.items() if floor is None}
    for folder in sorted(unknown):
        print(f"{folder}: add it to ORDER in docs/checks/folders.py")
    upward = [edge for edge in edges if not unknown & set(edge) and place[edge[0]] < place[edge[1]]]
    for source, target in upward:
        print(f"{source} includes the later {target}: {', '.join(sorted(edges[source, target]))}")
    if "--draw" in sys.argv[1:] and not unknown:
        for a, b in sorted(edges, key=lambda edge: (place[edge[0]], place[edge[1]], edge)):
            print(f"{a} -> {b}: {', '.join(sorted(edges[a, b]))}")
    return 1 if unknown or upward else 0


if __name__ == "__main__":
    sys.exit(main())
