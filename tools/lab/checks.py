"""Checks the sources' form, and builds the reference, whose pages are checked with it."""

import os
import re
import subprocess
import sys
from concurrent import futures
from pathlib import Path

import builds
import packages
from packages import install, output_of
from tool import Failure

CODE = ("*.c", "*.h", "*.cpp", "*.hpp", "*.cu")
STYLE = Path("/usr/share/doxygen-awesome-css/doxygen-awesome.css")
NO_UNITS = re.compile(r"_test\.dir/|/tests/|/cmake/|kernel_ptx|\.cu$")


def require(*command, **more):
    """Ends ./lab with the status of a command that fails, which has said why."""
    status = subprocess.run(command, check=False, **more).returncode
    if status != 0:
        sys.exit(status if status > 0 else 128 - status)


def files(*patterns: str) -> list:
    listed = output_of("git", "ls-files", "-z", *patterns).split("\0")[:-1]
    if not listed:
        raise Failure("git lists no files: this needs a clone of the repository")
    return [file for file in listed if Path(file).exists()]


def formats(args):
    install("clang-format")
    require("clang-format", *(["--dry-run", "--Werror"] if args.check else ["-i"]), *files(*CODE))
    if not args.check:
        return
    # The column limit also holds for comments and pages, but not for rows of tables, and for
    # addresses.
    is_long = False
    for file in files(*CODE, "*.cmake", "*CMakeLists.txt", "*.sh", "*.py", "*.md", "lab"):
        lines = Path(file).read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if len(line) > 100 and not line.removeprefix("/// ").startswith(("|", "https://")):
                print(f"{file}:{number}: {len(line)} columns")
                is_long = True
    if is_long:
        raise Failure("a line has at most 100 columns (above)")


def refuse_narrow_scopes():
    """Kernels communicate with other GPUs, which no emulator and no explorer tells from others."""
    narrow = re.compile(r"thread_scope_(thread|block|device)\b|__threadfence(_block)?\(")
    for file in files("common/simt/*.hpp", "labs/*.hpp", "labs/*.cu", "symm/*.hpp", "symm/*.cu"):
        for number, line in enumerate(Path(file).read_text(encoding="utf-8").split("\n"), 1):
            if narrow.search(line):
                raise Failure(f"{file}:{number}: a scope that orders nothing for other GPUs:\n"
                              f"{line}")


def lint(_):
    refuse_narrow_scopes()
    checkers = packages.checkers()
    require(checkers / "bin/ruff", "check", "--quiet", "--no-cache", ".")
    require(sys.executable, "-m", "mypy", "--no-error-summary", "--no-site-packages",
            env={**os.environ, "PYTHONPATH": str(checkers)})
    require(checkers / "bin/shellcheck", "--severity=warning", "lab", ".ci/run", *files("*.sh"))


def tidy(_):
    install("clang-tidy")
    builds.commands()
    # Several files at once: most of the time goes into headers that all of them include.
    builds.configure("tidy_units")
    import json
    units = [unit["file"] for unit in json.loads(
        Path("build/tidy_units/compile_commands.json").read_text())]
    require("xargs", "-0", "-P", str(len(os.sched_getaffinity(0))), "-n", "1", "clang-tidy", "-p",
            "build/tidy_units", "--quiet", "--warnings-as-errors=*", text=True,
            input="\0".join(unit for unit in units if not NO_UNITS.search(unit)))


def docs(_):
    install("doxygen", "?doxygen-awesome-css")
    python = (sys.executable, "-B")
    require(*python, "docs/recordings/record.py", "--pictures", "--check")
    Path("build/docs").mkdir(parents=True, exist_ok=True)
    require("rm", "-rf", "build/docs/html")  # links to removed pages would still work
    with open("build/docs/layout.xml", "wb") as layout:
        require(*python, "docs/site/pages.py", "layout", stdout=layout)
    scripts = [str(STYLE.with_suffix("")) + f"-{name}.js"
               for name in ("darkmode-toggle", "fragment-copy-button")]
    # Settings of newer releases: their own dark colors, which the switch would not turn off, and a
    # README.md as part of its folder's page.
    known = output_of("doxygen", "-g", "-")
    newer = "".join(f"\n{setting}" for setting in ("HTML_COLORSTYLE = LIGHT",
                                                   "IMPLICIT_DIR_DOCS = NO")
                    if f"\n{setting.split()[0]} " in known)
    has_style = STYLE.is_file()
    require("doxygen", "-", text=True, input=Path("docs/Doxyfile").read_text() + newer + "\n",
            env={**os.environ, "SYMM_STYLE": str(STYLE) * has_style,
                 "SYMM_SCRIPTS": " ".join(scripts) * has_style})
    require(*python, "docs/site/complete.py")
    checks = [("site/play.py",), ("site/look.py",), ("site/readable.py",), ("site/ask.py",),
              ("site/served.py",), ("site/served_test.py",), ("checks/lab_pages.py",),
              ("checks/explored.py",), ("checks/folders.py",), ("checks/where.py",),
              ("results.py", "--check")]
    with futures.ThreadPoolExecutor() as pool:  # a browser waits most of the time
        list(pool.map(lambda check: require(*python, f"docs/{check[0]}", *check[1:]), checks))
    print("build/docs/html/index.html")
