#!/usr/bin/env python3
"""Draws the graph of folders from their includes, and checks that no folder of a lab includes a
later one. Skips tests, scenes, programs and benchmarks: they may include everything.

    folders.py [--draw]"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ORDER = """
labs/01_vmm_alloc labs/02_access labs/03_ipc
labs/04_shm_transport/host_memory labs/04_shm_transport/connection labs/04_shm_transport/proxy
labs/04_shm_transport/transport labs/04_shm_transport/unpack_queue
labs/05_device_prims/reduction labs/05_device_prims labs/05_device_prims/ring
labs/05_device_prims/shared_work labs/05_device_prims/kernel_ways
labs/06_allreduce/algorithms labs/06_allreduce/algorithms/one_shot
labs/06_allreduce/algorithms/sentinel labs/06_allreduce/algorithms/two_shot
labs/06_allreduce/algorithms/two_shot_push labs/06_allreduce/algorithms/two_shot_copy
labs/06_allreduce/algorithms/two_shot_chunks
labs/06_allreduce/halves labs/06_allreduce/tuning labs/06_allreduce/communicator
labs/06_allreduce/machines labs/06_allreduce/comparison labs/06_allreduce/comparison/bench
""".split()
PROGRAMS = {"main.cpp", "bench.cpp", "tune.cpp", "timeline.cpp", "driver_calls.cpp"}


def graph() -> dict:
    """The headers that one folder includes from another, by (from, to)."""
    edges = defaultdict(set)
    for path in ROOT.glob("labs/**/*"):
        folder = path.parent.relative_to(ROOT).as_posix()
        if path.suffix in {".hpp", ".cpp", ".cu"} and path.name not in PROGRAMS and \
                not {"tests", "example", "explore", "linker_errors"} & set(path.parts):
            for header in re.findall(r'#include "(labs/[^"]+)"', path.read_text()):
                if header.rpartition("/")[0] != folder:
                    edges[folder, header.rpartition("/")[0]].add(Path(header).name)
    return edges


def main() -> int:
    edges = graph()
    place = {folder: number for number, folder in enumerate(ORDER)}
    unknown = {folder for edge in edges for folder in edge} - place.keys()
    for folder in sorted(unknown):
        print(f"{folder}: add it to ORDER in docs/checks/folders.py")
    upward = [edge for edge in edges if not unknown & set(edge) and place[edge[0]] < place[edge[1]]]
    for source, target in upward:
        print(f"{source} includes the later {target}: {', '.join(sorted(edges[source, target]))}")
    if "--draw" in sys.argv[1:]:
        for source in ORDER:
            for (a, b), headers in sorted(edges.items(), key=lambda item: place.get(item[0][1], 0)):
                if a == source:
                    print(f"{a} -> {b}: {', '.join(sorted(headers))}")
    return 1 if unknown or upward else 0


if __name__ == "__main__":
    sys.exit(main())
