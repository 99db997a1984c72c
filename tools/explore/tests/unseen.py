"""Accesses that clang's -fsanitize=thread has left as they were, found in the LLVM code behind it.

usage: unseen.py FILE.ll          of clang 16 or newer, which write every pointer as `ptr`
"""

import re
import sys
from pathlib import Path

SEEN = {8, 16, 32, 64, 128}  # bits
SIZES = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128,
         "ptr": 64}
# A type, or the elements and the type of a vector.
TYPE = r"(?:<(?P<count>\d+) x (?P<element>\w+)>|(?P<type>\w+))"
ACCESS = re.compile(rf"(?:= load|store) (?:volatile )?{TYPE}.*ptr (?P<space>addrspace\(\d+\) )?"
                    r"(?P<at>[%@][\w.]+)")
OTHERS = re.compile(r"\b(atomicrmw|cmpxchg|load atomic|store atomic)\b|"
                    r"@(llvm\.(?:masked|x86)[\w.]*)\(.*\bptr\b|(asm) (?:sideeffect )?\"[^\"]")


def bits(access: re.Match) -> int:
    """0: not known, as for a struct."""
    element = access["element"] or access["type"]
    size = int(element[1:]) if re.fullmatch(r"i\d+", element) else SIZES.get(element, 0)
    return size * int(access["count"] or 1)


def reason(line: str, own: set, instrumented: bool) -> str | None:
    """Why the explorer does not see what a line accesses; None if it does, or there is nothing."""
    if other := OTHERS.search(line):
        return next(filter(None, other.groups()))
    access = ACCESS.search(line)
    if not access or access["at"] in own:
        return None
    if access["space"]:
        return access["space"].strip()
    if bits(access) not in SEEN | {0, 1}:
        return f"{bits(access)} bits"
    return None if instrumented else "in a function that is not instrumented"


def unseen(code: str) -> set:
    """`FILE:LINE: reason` of each such access."""
    files = dict(re.findall(r'^(!\d+) = .*!DIFile\(filename: "([^"]*)"', code, re.M))
    scopes = dict(re.findall(r"^(!\d+) = .*!DI(?:Subprogram|LexicalBlock\w*)\(.*?file: (!\d+)",
                             code, re.M))
    located = re.findall(r"^(!\d+) = .*!DILocation\(line: (\d+).*?scope: (!\d+)", code, re.M)
    places = {number: f"{Path(files.get(scopes.get(scope), '?')).name}:{line}"
              for number, line, scope in located}
    attributes = dict(re.findall(r"^attributes (#\d+) = \{(.*)\}", code, re.M))
    found = set()
    for head, body in re.findall(r"^define ([^\n]*)\{\n(.*?)^\}", code, re.M | re.S):
        number = re.search(r"\) (?:\w+ )*(#\d+)", head)
        instrumented = "sanitize_thread" in attributes.get(number[1] if number else "", "")
        own = set(re.findall(r"^ *(%[\w.]+) = alloca", body, re.M))
        for name, base in re.findall(r"^ *(%[\w.]+) = getelementptr .*?ptr (%[\w.]+)", body, re.M):
            own |= {name} if base in own else set()
        for line in body.splitlines():
            why = reason(line, own, instrumented)
            place = re.search(r"!dbg (!\d+)", line)
            if why and place:
                found.add(f"{places.get(place[1], '?')}: {why}")
    return found


if __name__ == "__main__":
    print(*sorted(unseen(Path(sys.argv[1]).read_text(encoding="utf-8"))), sep="\n")
