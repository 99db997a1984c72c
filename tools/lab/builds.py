"""Configures and builds with CMake's presets, and tests and installs what was built."""

import errno
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ninja
import tool
from labs import lab_named
from packages import BUILD, SANITIZERS, install, output_of, version
from tool import ROOT, Failure, become

PRESETS = ("emulated", "release", "nvcc", "debug", "asan", "tsan")  # that the caller may choose
NO_RANDOM_ADDRESSES = 0x0040000  # <sys/personality.h>


@functools.cache
def usual() -> tuple:
    """The preset if the caller chooses none, and why the driver does not work, if it does not.
    Without a GPU nothing needs nvcc: kernels are compiled as C++, for emulated GPUs."""
    if os.environ.get("SYMM_PRESET"):
        return os.environ["SYMM_PRESET"], ""
    if not shutil.which("nvidia-smi"):
        return "emulated", ""
    ended = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           check=False, text=True, errors="replace")
    if ended.returncode == 0:
        return "release", ""
    told = " ".join(ended.stdout.split())
    return "emulated", "" if "No devices" in told else f"exit status {ended.returncode}: {told}"


def chosen(preset: str | None) -> str:
    preset = preset or usual()[0]
    if preset not in (*PRESETS, "aarch64"):
        raise Failure(f"there is no preset '{preset}': choose one of {' '.join(PRESETS)}", 2)
    return preset


def of_architecture(name: str) -> str:
    """The preset that builds for it."""
    if name not in ("aarch64", "x86_64"):
        raise Failure(f"there is no architecture '{name}': choose one of aarch64 x86_64", 2)
    here = os.uname().machine
    if name != here and name != "aarch64":
        raise Failure(f"this machine is {here}: it builds for no other", 2)
    return "emulated" if name == here else name


def use_solved(command: str, arguments: list):
    """No command but the course's own builds an exercise's stub. While an exercise is begun, all
    others run in a copy that has solutions in the place of answers which `check` has not
    accepted."""
    if not any(Path(".course").glob("*.original")) and subprocess.run(
            ["grep", "-rqs", "--include=*.hpp", "--include=*.cpp", "--include=*.cu",
             r"// exercise [0-9A-Z]*\.[0-9]", "labs", "symm"], check=False).returncode != 0:
        return
    import check_tree
    if not check_tree.make(command):
        return
    print("(In build/solved: your answers that ./lab check has accepted, and the solutions of all "
          "other exercises.)", file=sys.stderr, flush=True)
    os.chdir(tool.caller)
    become(ROOT / "build/solved/lab", *arguments)


def needs_clang(preset: str) -> bool:
    return preset in ("asan", "tsan", "course", "aarch64") or preset.startswith("tidy")


def require_tools(preset: str):
    install(*BUILD, *(SANITIZERS if needs_clang(preset) else ()))
    found = re.search(r"[\d.]+", output_of("cmake", "--version") or "0")[0]
    if version(found) < (3, 25):
        raise Failure(f"CMake {found} is older than 3.25 (Debian 12, Ubuntu 24.04; else pip "
                      "install cmake)")


def compilers(preset: str) -> list:
    """CMake's arguments if $CXX names a compiler: presets that need clang have one of their own."""
    cxx = os.environ.get("CXX", "")
    is_clang = "clang" in Path(cxx).name
    if not cxx or preset == "aarch64" or (needs_clang(preset) and not is_clang):
        return []
    c = cxx.replace("clang++", "clang") if is_clang else cxx.replace("g++", "gcc")
    return [f"-DCMAKE_CXX_COMPILER={cxx}", f"-DCMAKE_C_COMPILER={os.environ.get('CC') or c}"]


def has_other_compiler(build: Path, wanted: list) -> bool:
    """Whether the build was configured with another compiler than the one that is wanted."""
    cache = build / "CMakeCache.txt"
    if not wanted or not cache.exists():
        return False
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)", cache.read_text(), re.M)
    cxx = wanted[0].partition("=")[2]
    return bool(found) and os.path.realpath(found[1]) != os.path.realpath(shutil.which(cxx) or cxx)


def has_toolkit(build: Path) -> bool:
    """Whether the headers are still there: the user may have emptied the cache."""
    cache = build / "CMakeCache.txt"
    found = cache.exists() and re.search(r"^CUDAToolkit_ROOT:\w+=(.*)", cache.read_text(), re.M)
    return not found or os.path.isdir(found[1])


def configure(preset: str, is_chosen: bool = True):
    """Has CMake configure build/PRESET, if it has not."""
    build = ROOT / "build" / preset
    if set(str(ROOT)) & set('";\\'):
        raise Failure(f"CMake cannot build in '{ROOT}': use a folder without \", ; and \\ in its "
                      "name")
    usual_preset, fault = usual()
    if preset == "emulated" and fault and not is_chosen:
        print("./lab: the NVIDIA driver does not work, so GPUs are emulated (SYMM_PRESET=emulated "
              f"hides this). nvidia-smi: {fault}", file=sys.stderr, flush=True)
    # Older versions built the course from the learner's own sources.
    if preset == "course":
        cache = build / "CMakeCache.txt"
        if not cache.exists() or not re.search(r"_DIRECTORY.*/course_tree$", cache.read_text(),
                                               re.M):
            shutil.rmtree(build, ignore_errors=True)
    build.parent.mkdir(exist_ok=True)
    if preset == usual_preset:  # the pages find the programs here, whichever preset built them
        link = ROOT / "build/bin"
        if not link.is_symlink() or os.readlink(link) != f"{preset}/bin":
            link.unlink(missing_ok=True)
            link.symlink_to(f"{preset}/bin")
    wanted = compilers(preset)
    if has_other_compiler(build, wanted):
        shutil.rmtree(build)
    if (build / "build.ninja").exists() and has_toolkit(build):
        return
    if not os.access(build if build.exists() else build.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "", str(build))
    require_tools(preset)
    if preset == "aarch64":
        import aarch64
        settings = aarch64.settings()
    else:
        import cuda
        settings = cuda.settings(needs_compiler=preset in ("release", "nvcc"))
    if preset == "course" and not has_thread_sanitizer():
        print("ThreadSanitizer does not run on this machine: checks use the explorer and the tests "
              "alone, and find fewer faults of order", flush=True)
        settings.append("-DSYMM_SANITIZE=")
    print("preparing build/tidy for editors (once)" if preset == "tidy" else
          f"configuring build/{preset}", flush=True)
    source = ROOT
    if preset == "course":  # which has its own sources
        import check_tree
        check_tree.make("course")
        source = check_tree.TREE
    ended = subprocess.run(["cmake", "--preset", preset, "-B", build, *settings, *wanted],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                           cwd=source)
    if ended.returncode != 0:
        output = ended.stdout.decode(errors="replace")
        sys.stderr.write(output)
        ninja.require_space(str(build.parent), output)
        raise Failure("could not configure (above)")


def build(preset: str, *targets: str, is_chosen: bool = True):
    configure(preset, is_chosen)
    status = ninja.build(f"build/{preset}", targets)
    if status != 0:
        sys.exit(status)


def build_chosen(args, *targets: str) -> str:
    """Builds with the preset of the command line; returns the folder of the programs."""
    preset = chosen(args.preset)
    build(preset, *targets, is_chosen=bool(args.preset))
    return f"build/{preset}/bin"


def has_thread_sanitizer() -> bool:
    """Whether a program with it starts here. On some kernels it does not find room for its shadow
    memory."""
    cxx = next((word.partition("=")[2] for word in compilers("course")), "clang++")
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:  # /tmp may be noexec
        source, program = Path(folder, "empty.cpp"), Path(folder, "empty")
        source.write_text("int main() {}\n", encoding="ascii")
        return all(subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  check=False).returncode == 0
                   for command in ([cxx, "-fsanitize=thread", source, "-o", program],
                                   [program]))


def fix_addresses():
    """ThreadSanitizer's shadow memory does not fit if more than 28 bits of addresses are random.
    Then this process's programs get addresses that are not random."""
    try:
        bits = int(Path("/proc/sys/vm/mmap_rnd_bits").read_text())
    except (OSError, ValueError):  # no such setting, or only root may read it
        return
    if bits <= 28:
        return
    import ctypes
    libc = ctypes.CDLL(None)
    now = libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    if now == -1 or not now & NO_RANDOM_ADDRESSES and libc.personality(
            ctypes.c_ulong(now | NO_RANDOM_ADDRESSES)) == -1:
        raise Failure(
            f"ThreadSanitizer cannot run: {bits} bits of addresses are random here "
            "(vm.mmap_rnd_bits), and the system refuses to turn this off (personality). Run "
            "`sudo sysctl vm.mmap_rnd_bits=28`; or start the container with docker's "
            "--security-opt=seccomp=unconfined")


def start(preset: str, *command):
    """Goes on as a program of this build."""
    if preset == "aarch64":
        import aarch64
        command = (*aarch64.runner(), *command)
    become(*command)


def targets_of(lab: str | None) -> list:
    """With the tests that have this lab's label."""
    if lab is None:
        return []
    more = ["labs/bugs_that_shipped/all", "symm/all", "tools/all"] * (lab == "06_allreduce")
    return [f"labs/{lab}/all", *more]


def only_build(args):
    build_chosen(args, *targets_of(args.nn and lab_named(args.nn)))


def test(args):
    lab = args.nn and lab_named(args.nn)
    preset = chosen(args.preset)
    foreign = preset == "aarch64"
    build_chosen(args, *(["quick_tests"] if foreign else targets_of(lab)))
    if foreign:
        import aarch64
        args.arguments = ["-L", "quick", "-E", "|".join(aarch64.NOT_UNDER_QEMU), *args.arguments]
    # The tests start their own ranks, also if this process is a rank of a launcher's.
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        os.environ.pop(name, None)
    if preset == "tsan":
        fix_addresses()
    # Two per processor: tests spend half of their time waiting.
    start(preset, "ctest", "--preset", preset, f"-j{2 * len(os.sched_getaffinity(0))}",
          "--no-tests=error", *["--progress"] * sys.stdout.isatty(),  # one line instead of two
          *(["-L", f"lab{lab[:2]}"] if lab else []), *args.arguments)


def install_library(args):
    prefix = (tool.caller / args.folder).resolve()
    folder = Path(build_chosen(args, "symm_installed")).parent
    ended = subprocess.run(["cmake", "--install", folder, "--prefix", prefix], check=False,
                           stdout=subprocess.DEVNULL)
    if ended.returncode != 0:
        return ended.returncode
    print(f"installed in {prefix}: find_package(symm) with -DCMAKE_PREFIX_PATH={prefix}")


def commands(_=None):
    """Writes the compile commands in the folder that .clangd names."""
    configure("tidy")
    ended = subprocess.run(["ninja", "-C", "build/tidy", "build.ninja"],  # if a CMakeLists changed
                           stdout=subprocess.DEVNULL, check=False)
    return ended.returncode


def setup(_):
    install(*BUILD, *SANITIZERS, "clang-format", "clang-tidy", "doxygen", "?doxygen-awesome-css",
            "?chromium-headless-shell", "gnuplot-nox", "jq", "?libopenmpi-dev", "?openmpi-bin")
    import cuda
    import packages
    cuda.settings(needs_compiler=True)
    if os.uname().machine == "x86_64":
        packages.checkers()
    if (ROOT / "labs").is_dir():  # the Dockerfile has only the files of ./lab
        commands()
    print("ready: ./lab run 06")
