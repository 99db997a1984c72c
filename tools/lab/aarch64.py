#!/usr/bin/env python3
"""`--arch aarch64` on an x86-64 machine: programs are built by clang, for Debian's libraries for
that processor, in the user's cache, and run by qemu. As a program: runs a command, and all that it
starts, with qemu as the interpreter of aarch64 programs.

That shows that everything builds there and gives right results. qemu runs one instruction after the
other, so it shows nothing of the weak order of an Arm processor.
"""

import os
import subprocess
import sys
from pathlib import Path

import cuda
from packages import CACHE, install, put, temporary
from tool import ROOT, Failure, become

NAME = "aarch64"
LIBRARIES = ("libgtest-dev", "libgmock-dev", "libbenchmark-dev", "libfmt-dev", "libcli11-dev",
             "python3-numpy")
REGISTERED = Path("/proc/sys/fs/binfmt_misc")
# <linux/binfmts.h>: programs of 64 bits, of either kind, for this processor. F: qemu is opened now.
HEADER = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
QEMU = Path("/usr/bin/qemu-aarch64-static")
# What qemu cannot: limits of memory, and the error of a program that is not there. And what takes
# long: many processes that fail.
NOT_UNDER_QEMU = ("emu_test.Shortage", "Process.AProgramThatIsNotThereIsNamed",
                  "ForbiddenKernel.IsNotTakenForShownWhenItWasNot",
                  "RangeRounds", "RangeFailures", "RankProcesses")


def release() -> dict:
    """Of /etc/os-release: ID, VERSION_CODENAME, ..."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}


def libraries() -> Path:
    """The folder of Debian's libraries for aarch64, with all that they need."""
    about = release()
    codename = about.get("VERSION_CODENAME", "")
    source = {"debian": ("http://deb.debian.org/debian", "main"),
              "ubuntu": ("http://ports.ubuntu.com/ubuntu-ports", "main universe")}
    if about.get("ID") not in source or not codename:
        raise Failure("--arch aarch64 takes its compiler and libraries from Debian or Ubuntu: use "
                      "one of them, or a machine of that kind")
    folder = CACHE / f"{NAME}-{codename}"
    if folder.is_dir():
        return folder
    where, components = source[about["ID"]]
    print(f"fetching libraries for {NAME} from {about['ID'].capitalize()} (once, 33 MB)",
          flush=True)
    with temporary(folder) as scratch:
        for name in ("root", "state/lists/partial", "cache/archives/partial"):
            (scratch / name).mkdir(parents=True)
        (scratch / "status").touch()  # nothing is installed there
        (scratch / "sources").write_text(
            f"deb [signed-by=/usr/share/keyrings/{about['ID']}-archive-keyring.gpg] {where} "
            f"{codename} {components}\n", encoding="utf-8")
        options = [word for option in (
            "APT::Architecture=arm64", "APT::Architectures=arm64",
            f"Dir::State={scratch}/state", f"Dir::State::status={scratch}/status",
            f"Dir::Cache={scratch}/cache", f"Dir::Etc::SourceList={scratch}/sources",
            "Dir::Etc::SourceParts=/dev/null", "APT::Sandbox::User=root")
            for word in ("-o", option)]
        for command in (["update"], ["install", "--download-only", "--no-install-recommends", "-y",
                                     *LIBRARIES]):
            if subprocess.run(["apt-get", *options, "-q", *command], check=False,
                              stdout=subprocess.DEVNULL).returncode != 0:
                raise Failure(f"could not fetch libraries for {NAME} (above)")
        for package in sorted((scratch / "cache/archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, scratch / "root"], check=True)
        put(scratch / "root", folder)
    return folder


def settings() -> list:
    """CMake's arguments."""
    install("g++-aarch64-linux-gnu", "qemu-user-static")
    return [f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/Aarch64.cmake",
            f"-DSYMM_AARCH64_LIBRARIES={libraries()}", *cuda.headers(NAME)]


def runner() -> list:
    """The words before a command that runs programs for aarch64."""
    os.environ["QEMU_LD_PREFIX"] = str(libraries())
    if any(REGISTERED.glob("qemu-aarch64")):
        return []
    # In a user namespace, where binfmt_misc is its own: the system's stays as it is.
    return ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", sys.executable,
            "-B", "-X", "utf8", __file__]


def main(*command: str):
    mounted = subprocess.run(["mount", "-t", "binfmt_misc", "none", REGISTERED], check=False,
                             capture_output=True, text=True)
    try:
        if mounted.returncode != 0:
            raise OSError(mounted.stderr.strip())
        (REGISTERED / "register").write_text(f":qemu-aarch64:M::{HEADER}:{MASK}:{QEMU}:F",
                                             encoding="ascii")
    except OSError as error:
        sys.exit(f"./lab: programs for {NAME} cannot be started here ({error}): install "
                 "qemu-user-binfmt, or use Linux 6.7 or newer where user namespaces are allowed")
    become(*command)


if __name__ == "__main__":
    main(*sys.argv[1:])
