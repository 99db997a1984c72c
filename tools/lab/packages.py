"""Installs Debian's packages, and PyPI's wheels into the user's cache."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tool import ROOT, Failure

HERE = Path(__file__).resolve().parent
BUILD = ("g++", "cmake", "ninja-build", "git", "libgtest-dev", "libgmock-dev", "libbenchmark-dev",
         "libcli11-dev", "libfmt-dev", "python3", "python3-venv")
# Before Debian 12 the sanitizers' runtimes were part of clang.
SANITIZERS = ("clang", "llvm", "?lld", "?libclang-rt-dev")


def cache_folder() -> Path:
    """The user's, or one in the repository for a user who has none."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or
                 Path(os.environ.get("HOME") or "/root", ".cache")) / "symm"
    there = next(path for path in (usual, *usual.parents) if os.path.exists(path))
    return usual if there == usual or os.access(there, os.W_OK) else ROOT / "build/cache"


CACHE = cache_folder()


def output_of(*command) -> str:
    """What the command prints; empty if it fails, or is not installed."""
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               check=False, text=True, errors="replace")
    except OSError:
        return ""
    return ended.stdout if ended.returncode == 0 else ""


def version(text: str) -> tuple:
    """The first version number of a text: (3, 25, 1)."""
    found = re.search(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def as_root() -> str:
    """The program that runs another one as root."""
    return "env" if os.geteuid() == 0 else "sudo"


def update_lists():
    """Of the packages that there are."""
    print("updating the list of packages", flush=True)
    if subprocess.run([as_root(), "apt-get", "update", "-q"], stdout=subprocess.DEVNULL,
                      check=False).returncode != 0:
        print("(could not update it)", flush=True)


def install(*packages: str):
    """Installs those that are missing, if there is Debian's package manager. A name that begins
    with a question mark is optional: it is installed if this release has it."""
    if not shutil.which("dpkg-query"):
        return

    def is_known(package: str) -> bool:
        return bool(output_of("apt-cache", "show", package.lstrip("?")))

    # A fresh container's image has no lists of packages.
    has_lists = any(Path("/var/lib/apt/lists").glob("*_Packages*"))
    missing = [package for package in packages if "installed" not in output_of(
        "dpkg-query", "-W", "-f=${db:Status-Status}\n", package.lstrip("?")).split() and
        not (package.startswith("?") and has_lists and not is_known(package))]
    if not missing:
        return
    is_required = not all(package.startswith("?") for package in missing)
    if not shutil.which(as_root()):
        if is_required:
            raise Failure("install these packages first: " +
                          " ".join(package.lstrip("?") for package in missing))
        return
    update_lists()
    wanted = [package.lstrip("?") for package in missing
              if not package.startswith("?") or is_known(package)]
    if not wanted:
        return
    print("installing", *wanted, flush=True)
    with subprocess.Popen(
            [as_root(), "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y",
             "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", *wanted],
            stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            if line.startswith(("Need to get", "Fetched")):
                print(line, end="", flush=True)
    if process.returncode != 0 and is_required:
        raise Failure(f"could not install {' '.join(wanted)}")


def newest_clang() -> int:
    """The highest version that this release has."""
    def known() -> int:
        names = output_of("apt-cache", "pkgnames", "clang-")
        return max(map(int, re.findall(r"^clang-(\d+)$", names, re.M)), default=0)

    if known() < 16:  # there are no lists of packages yet
        update_lists()
    return known()


def has_pip() -> bool:
    return bool(output_of(sys.executable, "-m", "pip", "--version"))


@contextlib.contextmanager
def temporary(folder: Path):
    """Yields a temporary folder next to the final one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as scratch:
        yield Path(scratch)


@contextlib.contextmanager
def fetched(folder: Path, requirements: str, cannot: str, machine: str = ""):
    """Yields a temporary folder next to the final one, with the wheels of tools/lab/REQUIREMENTS,
    for another machine if one is named. Raises Failure(cannot) if they cannot be fetched."""
    platforms = [f"--platform={kind}_{machine}" for kind in ("manylinux2014", "manylinux_2_17")]
    with temporary(folder) as scratch:
        wheels = scratch / "wheels"
        if subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--root-user-action", "ignore", "--no-deps", "--only-binary", ":all:",
                 "--require-hashes", "--target", wheels, "-r", HERE / requirements,
                 *(platforms if machine else ())], check=False).returncode != 0:
            raise Failure(cannot)
        yield wheels


def put(complete: Path, folder: Path):
    """Renames a complete folder. If another ./lab has made it meanwhile, that one stays."""
    try:
        complete.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            raise Failure(f"could not create {folder}: {error.strerror}") from None


def checkers() -> Path:
    """The folder of ruff, shellcheck and mypy."""
    import zlib
    folder = CACHE / (f"checkers-{zlib.crc32((HERE / 'checkers.txt').read_bytes())}-"
                      f"{sys.implementation.cache_tag}")  # mypy is compiled for one Python
    if not folder.is_dir():
        if not has_pip():
            install("python3-pip")
        print("fetching ruff, shellcheck and mypy from PyPI (once, 31 MB)", flush=True)
        with fetched(folder, "checkers.txt", "could not fetch ruff, shellcheck and mypy (above), "
                     "which are for x86_64: try again") as wheels:
            put(wheels, folder)
    return folder
