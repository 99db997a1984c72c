"""File systems of Debian's releases in the user's cache, and commands that run in one of them."""

import contextlib
import os
import shlex
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from packages import CACHE, install, put, temporary
from tool import Failure

HERE = "/course/symm"  # where a command finds the repository
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass
class System:
    """What differs from a container that root starts with the defaults."""

    release: str = "bookworm"
    owner: int = 0  # of the repository
    before: str = ""  # a command of root's
    by: str = ""  # what starts the command
    without: tuple = ()  # files
    more: tuple = ()  # arguments of bwrap
    docker_on_ubuntu: bool = False  # 32 bits of addresses are random, personality(2) is refused


def run(command: list, passed=()) -> tuple:
    """Its exit status and output, which is shown meanwhile."""
    output = []
    with subprocess.Popen(command, pass_fds=passed, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            output.append(line)
    return process.returncode, "".join(output)


def root_of(release: str, folder: Path) -> Path:
    """Its smallest file system with a package manager, which Docker calls slim, and what
    `./lab setup` installs in it."""
    if os.geteuid() != 0:
        raise Failure("these rows make file systems: run ./lab matrix as root")
    install("mmdebstrap", "bubblewrap")
    root = CACHE / f"debian-{release}"
    if not root.is_dir():
        print(f"fetching Debian {release} (once)", flush=True)
        with temporary(root) as scratch:
            made = scratch / "root"
            status, _ = run(["mmdebstrap", "--quiet", "--variant=minbase",  # mirrors may be behind
                             "--aptopt=Acquire::Check-Valid-Until false", release, made,
                             "http://deb.debian.org/debian"])
            if status != 0 or run(words_in(made, System(), folder, "./lab setup"))[0] != 0:
                raise Failure(f"could not make a file system of Debian {release} (above)")
            put(made, root)
    return root


def words_in(root: Path, system: System, folder: Path, command: str, more=()) -> list:
    """The words that run a command of the shell in `folder`."""
    return ["bwrap", "--die-with-parent", "--unshare-pid", "--bind", root, "/", "--proc", "/proc",
            "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp", "--tmpfs", "/course",
            "--bind", folder, HERE, "--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf",
            "--ro-bind", CERTIFICATES, "/run/certificates", "--clearenv", "--setenv", "PATH", PATH,
            "--setenv", "HOME", "/root", "--setenv", "PIP_CERT", "/run/certificates",
            "--chdir", HERE, *more, *system.more, "sh", "-c",
            f"{system.before or ':'} && {system.by} sh -c {shlex.quote(command)}"]


def refusal_of_personality() -> bytes:
    """A filter for seccomp, of x86-64: personality(2) only tells its value, as Docker's default has
    it. docs.kernel.org/userspace-api/seccomp_filter.html"""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    number, argument = 0, 16  # offsets in struct seccomp_data
    personality, eperm = 135, 1
    allow, fail = 0x7FFF0000, 0x00050000
    return b"".join(struct.pack("=HBBI", *step) for step in (
        (load, 0, 0, number), (jump_if_equal, 0, 3, personality),
        (load, 0, 0, argument), (jump_if_equal, 1, 0, 0xFFFFFFFF),
        (give, 0, 0, fail | eperm), (give, 0, 0, allow)))


def run_in(system: System, folder: Path, command: str) -> tuple:
    """The exit status and output of a command of the shell, which finds `folder` at HERE."""
    root = root_of(system.release, folder)
    passed: list = []
    more: list = []
    with contextlib.ExitStack() as files:
        if system.without:
            whole, root = root, Path(files.enter_context(temporary(root)), "root")
            subprocess.run(["cp", "-al", whole, root], check=True)
            for program in system.without:
                (root / program).unlink()

        def file_with(content: bytes) -> str:
            file = files.enter_context(tempfile.TemporaryFile())
            file.write(content)
            file.seek(0)
            passed.append(file.fileno())
            return str(file.fileno())

        if system.docker_on_ubuntu:
            more += ["--ro-bind-data", file_with(b"32\n"), "/proc/sys/vm/mmap_rnd_bits",
                     "--seccomp", file_with(refusal_of_personality())]
        return run(words_in(root, system, folder, command, more), passed)
