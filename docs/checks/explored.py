#!/usr/bin/env python3
"""Checks that each header with device code of the protocols is included by a scene of the explorer,
directly or not: no exploration can find a fault in the others."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["common/simt", "labs/04_shm_transport", "labs/05_device_prims", "labs/06_allreduce",
           "symm/collectives"]
# No rank waits for another one in:
ALONE = ["labs/05_device_prims/kernel_ways/kernel_work.hpp",
         "labs/05_device_prims/reduction/exact_reference.hpp"]


def visit(file: Path, seen: set):
    if file in seen:
        return
    seen.add(file)
    for name in re.findall(r'#include ["<]([\w/.]+)[">]', file.read_text()):
        for found in filter(Path.exists, (ROOT / name, file.parent / name)):
            visit(found.resolve(), seen)


def main() -> int:
    seen = set()
    for scene in [file for folder in ("labs", "symm", "tools")
                  for file in ROOT.glob(f"{folder}/**/explore/**/*.cpp")]:
        visit(scene, seen)
    headers = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.hpp"))
               if file.parent.name != "tests"]
    device = [str(file.relative_to(ROOT)) for file in headers if file not in seen
              and re.search(r"^(?!///).*__device__", file.read_text(), re.M)]
    for name in set(device) ^ set(ALONE):
        print(f"{name}: " + ("no scene includes it" if name in device else
                             "has no device code, or a scene includes it: drop it from ALONE"))
    return 0 if device == ALONE else 1


if __name__ == "__main__":
    sys.exit(main())
