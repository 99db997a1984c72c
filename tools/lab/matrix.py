"""./lab matrix: with which compilers, systems and containers the commands were seen to work. Each
row's commands run in a copy of this tree; README.md and docs/SETUPS.md tell what became of them."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import systems
from packages import install, newest_clang
from systems import System
from tool import ROOT, Failure

COMMANDS = {
    "run 06": "./lab run 06",
    "explore": "./lab explore barrier",
    # Exercise 05.7, answered: tests under ThreadSanitizer, and an exploration.
    "check": r"""
        ./lab start 05.7 --no-open &&
        sed -i 's/aborted_ = \(aborted_ ||.*\);/aborted_ = block_.sync_or(\1);/' \
            labs/05_device_prims/abort_barrier.hpp &&
        ./lab check""",
    "grade": """
        line=$(./lab grade | grep ^05.7)
        echo "$line"
        case $line in *2/2*) ;; *) false ;; esac"""}


@dataclass
class Row:
    """A system of its own, or this one with another compiler (`cxx`) or architecture."""

    name: str
    about: tuple  # the first cells
    commands: tuple
    system: System | None = None
    cxx: str = ""
    arch: str = ""
    copy: str = ""  # of the tree: rows may share one, and what is built there


@dataclass
class Table:
    """In a page, below its head."""

    page: str
    columns: tuple  # of the cells
    commands: tuple
    rows: list

    def head(self) -> str:
        names = (*self.columns, *(f"`{name}`" for name in self.commands))
        return f"| {' | '.join(names)} |\n"


def compilers() -> Table:
    here = "Debian 12, x86-64"
    most = ("run 06", "explore", "check")
    return Table("README.md", ("machine", "compilers"), most, [
        Row("usual", (here, "g++ 12, clang 14"), most),
        Row("g++-11", (here, "g++ 11"), ("run 06",), cxx="g++-11"),
        Row("clang-16", (here, "clang 16"), most, cxx="clang++-16"),
        Row("newest", (here, "its newest clang: 22"), most, cxx=f"clang++-{newest_clang()}"),
        Row("trixie", ("Debian 13, x86-64", "g++ 14, clang 19"), most, System("trixie")),
        Row("sid", ("Debian sid, x86-64", "g++ 16, clang 21"), most, System("sid")),
        Row("aarch64", ("Debian 12, aarch64 under qemu", "clang 14"), ("run 06",), arch="aarch64"),
        Row("ubuntu", ("Ubuntu 24.04, x86-64", "g++ 13, clang 18"), ()),
        Row("arm", ("an Arm processor", "any"), ())])


def containers() -> Table:
    three = ("run 06", "check", "grade")
    as_user = "setpriv --reuid=1000 --regid=1000 --clear-groups"
    shm = ("--tmpfs", "/dev/shm")

    def row(name, about, copy="containers", **system):
        return Row(name, (about,), three, System(**system), copy=copy)

    return Table("docs/SETUPS.md", ("set-up",), three, [
        row("slim", "slim: no sysctl, ps or locale"),
        row("no-setarch", "without setarch", without=("usr/bin/setarch",)),
        row("no-git", "without git", without=("usr/bin/git",)),
        row("no-network", "without a network", more=("--unshare-net",)),
        row("no-home", "without HOME", by="env -u HOME"),
        row("read-only-root", "all is read-only but /tmp and the clone",
            more=("--remount-ro", "/")),
        row("noexec", "/tmp from which no program starts", copy="noexec",
            before="mount -o remount,noexec /tmp"),
        row("shm-64M", "/dev/shm of 64 MB, as Docker's", more=("--size", "67108864", *shm)),
        row("shm-4K", "/dev/shm of 4 KB", more=("--size", "4096", *shm)),
        row("no-shm", "without /dev/shm", before="rmdir /dev/shm"),
        row("inside", "no repository of its own, inside another one", before="git init -q .."),
        row("user", "a user without name, home or rights", copy="user", owner=1000,
            by=f"env HOME=/ {as_user}"),
        row("rootless", "root of a user namespace, as in rootless Podman", copy="user", owner=1000,
            by=f"env HOME={systems.HERE}/build/home {as_user} unshare --user --map-root-user"),
        row("personality", "Docker on Ubuntu 24.04: `vm.mmap_rnd_bits` 32, personality refused",
            docker_on_ubuntu=True),
        row("read-only-clone", "a clone that is read-only", more=("--remount-ro", systems.HERE)),
        row("other-user", "another user's clone", by=f"env HOME=/tmp {as_user}")])


def copy_tree(folder: Path):
    """The files that git knows, as they are now, and no begun exercise."""
    shutil.rmtree(folder / ".course", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    packed = subprocess.run(["tar", "--null", "-T", "-", "-c"], cwd=ROOT, check=True,
                            input=listed.stdout, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], check=True, input=packed.stdout)


def run(row: Row, folder: Path, command: str) -> tuple:
    if row.system:
        return systems.run_in(row.system, folder, command)
    script = f"cd '{folder}' && unset SYMM_PRESET"
    if row.cxx:
        script += f" && export CXX={row.cxx}"
    return systems.run(["bash", "-c", f"{script} && {command} {row.arch and '--arch ' + row.arch}"])


def reason(output: str) -> str:
    """What ./lab says last, or else the last line."""
    lines = output.split("\n")
    said = [line for line in lines if line.startswith("./lab: ")] or lines[-2:-1] or lines
    return said[-1].removeprefix("./lab: ").replace("|", "/")


def seen(row: Row, commands: tuple) -> dict:
    """What became of the row's commands. One that fails has the reason for a cell."""
    if row.cxx:
        install(row.cxx.replace("clang++", "clang"))
    folder = ROOT / "build/matrix" / (row.copy or row.name)
    copy_tree(folder)
    owner = row.system.owner if row.system else 0
    if owner:
        subprocess.run(["chown", "-R", f"{owner}:{owner}", folder], check=True)
    cells: dict = {}
    for name in commands:
        print(f"== {', '.join(row.about)}: {name}", flush=True)
        status, output = run(row, folder, COMMANDS[name])
        cell = "yes" if status == 0 else f"no: {reason(output)}"
        cells[name] = "the same" if cell != "yes" and cell in cells.values() else cell
    if owner:
        subprocess.run(["chown", "-R", "0:0", folder], check=True)
    if not row.copy:
        shutil.rmtree(folder)
    return cells


def line_of(table: Table, row: Row, cells: dict) -> str:
    became = (cells.get(name, "not seen") for name in table.commands)
    return f"| {' | '.join((*row.about, *became))} |\n"


def lines_in(text: str, table: Table) -> tuple:
    """Where the table begins and ends in its page, and what it has for each of its rows."""
    begin = text.index(table.head())
    end = re.compile(r"^(?!\|)", re.M).search(text, begin).start()
    old = text[begin:end].splitlines(keepends=True)
    lines = [next((line for line in old if line.startswith(f"| {' | '.join(row.about)} |")),
                  line_of(table, row, {})) for row in table.rows]
    return begin, end, old[:2], lines


def put(table: Table, row: Row, cells: dict):
    page = ROOT / table.page
    text = page.read_text(encoding="utf-8")
    begin, end, head, lines = lines_in(text, table)
    lines[table.rows.index(row)] = line_of(table, row, cells)
    page.write_text(text[:begin] + "".join([*head, *lines]) + text[end:], encoding="utf-8")


def compare(table: Table, row: Row, cells: dict):
    text = (ROOT / table.page).read_text(encoding="utf-8")
    lines = lines_in(text, table)[3]
    told = dict(zip(table.commands, lines[table.rows.index(row)].strip("| \n").split(" | ")[
        len(table.columns):], strict=True))
    for name, cell in cells.items():
        if told[name] != cell:
            raise Failure(f"{', '.join(row.about)}: {name}: {table.page} says '{told[name]}', but "
                          f"seen was '{cell}'")


def main(args):
    tables = [compilers(), containers()]
    names = [row.name for table in tables for row in table.rows if row.commands]
    for name in args.row:
        if name not in names:
            raise Failure(f"there is no row '{name}': choose from {' '.join(names)}", 2)
    wanted = args.row or names
    for table in tables:
        for row in (row for row in table.rows if row.name in wanted):
            if args.check:
                compare(table, row, seen(row, row.commands[-1:]))
            else:
                put(table, row, seen(row, row.commands))
    return 0
