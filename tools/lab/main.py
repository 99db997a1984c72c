"""./lab: the table of all commands, and the parser that is made from it."""

import sys

if sys.version_info < (3, 10):
    sys.exit(f"./lab: Python {sys.version.split()[0]} is older than 3.10: install a newer python3")

import argparse
import contextlib
import importlib
import os
import signal
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import tool
from tool import ROOT, Failure

# Modules are imported when a command needs them: ./lab starts many times a minute.
sys.path += [str(ROOT / folder) for folder in
             ("tools/course", "tools/explore/player", "docs/checks", ".ci")]
PRESETS = "emulated|release|nvcc|debug|asan|tsan"
ABOUT = """\
Each command installs what it needs: packages on Debian and Ubuntu and, if there is no CUDA
Toolkit, NVIDIA's headers or compiler from PyPI. A GPU is not needed: the preset is release if
there is one, else emulated, which needs no nvcc. SYMM_PRESET sets another."""


@dataclass
class Command:
    """A row of the table. A word in brackets may be left out; one with dots may come many times."""

    name: str
    usage: str
    help: str
    function: str  # module:name
    words: tuple = ()  # explanations of the words of `usage`
    options: dict = field(default_factory=dict)
    flags: str = ""  # builds: takes --preset; solved: runs in build/solved while an exercise is
    #                  begun

    def takes_arguments(self) -> bool:
        return self.usage.endswith("[-- ARGS]")

    def arguments(self):
        """For each word of `usage`: itself, its attribute, and its explanation."""
        for word, text in zip(self.usage.replace("[-- ARGS]", "").split(), self.words, strict=True):
            yield word, word.strip("[.]").lower(), text


RUN = "course:run"
LAB = ("a lab's number: 06",)
ID = ("an exercise: 05.2; else the current one",)
STEP = {"--step": "go through one execution step by step", "--browser": "the same in a web page"}
TABLE = {
    "The course": (
        Command("learn", "[WORD]", "list all exercises, and the next one; or those that match a "
                "word", RUN, ("list only exercises that match it: barrier, 05, fix",)),
        Command("start", "[ID]", "begin exercise ID (05.2), or the next one", RUN,
                ("an exercise; else the next one",), {"--no-open": "do not open an editor"}),
        Command("check", "[ID] [ANSWER...]", "build and test your answer, and explain what is "
                "still wrong", RUN, (*ID, "to an exercise that asks a question"),
                {"--all": "check every exercise that is begun",
                 "--raw": "also print the whole output", **STEP}),
        Command("import", "[ANSWER...]", "take answers to questions that were given on the site",
                RUN, ("the site's line: 05.9=20,30 ...",)),
        Command("watch", "[ID]", "check at every save", RUN, ID),
        Command("hint", "[ID]", "show one more hint", RUN, ID),
        Command("solution", "[ID]", "compare your answer with the solution", RUN, ID,
                {"--yes": "also of an open task"}),
        Command("reset", "[ID]", "restore the original code of an exercise, or of a lab: 05", RUN,
                ID),
        Command("skip", "[ID]", "skip the exercise, and restore the original code", RUN, ID,
                {"--if-known": "ask three questions about a lab (02), and skip all of it if you "
                 "know the answers"}),
        Command("score", "[ID]", "show what your answers cost, and the author's: calls, accesses "
                "over links", RUN, ("an exercise; else all",)),
        Command("update", "[VERSION]", "take a newer version of the repository (in a git clone)",
                RUN, ("a branch, tag or commit; else origin's newest",)),
        Command("grade", "[FOLDER]", "check every answer, and print the points; of each repository "
                "in a folder", RUN, ("with a copy of the course of each learner; else this one",),
                {"--json": "print JSON"})),
    "The labs": (
        Command("list", "", "list the six labs and their topics", "labs:show"),
        Command("run", "NN [-- ARGS]", "build lab NN and run its program (./lab run 06 -- --ranks "
                "4 --help)", "programs:run", LAB, flags="builds solved"),
        Command("test", "[NN] [-- ARGS]", "build and run all tests, or one lab's; ARGS are ctest's",
                "builds:test", LAB, flags="builds solved"),
        Command("bench", "NN [-- ARGS]", "build and run lab NN's benchmarks; for 06, also draw its "
                "curves. ring and fastest: lab 06's, with that algorithm of symm/examples",
                "programs:bench", LAB, flags="builds solved"),
        Command("trace", "[STEP] [-- ARGS]", "show the driver's calls behind NCCL's functions, and "
                "behind ours", "programs:trace", ("a step of the program; changes: those between "
                "NCCL's versions",), flags="builds solved"),
        Command("explore", "[WHAT] [-- ARGS]", "run protocols in every order, with every value "
                "that a load may return (docs/EXPLORE.md): a lab's (05), or some (barrier, "
                "one_shot/2x1); --step goes through one of them step by step, --browser in a web "
                "page", "programs:explore", ("a lab's number, or the beginning of protocols' "
                "names; else all",), STEP, "solved"),
        Command("plot", "FILE", "draw the curves of a file written by 06_allreduce_bench --json",
                "programs:plot", ("a file's name: rows.json",)),
        Command("build", "[NN]", "build everything, or one lab", "builds:only_build", LAB,
                flags="builds solved"),
        Command("install", "FOLDER", "build and install the library, for programs of your own",
                "builds:install_library", ("a folder: /tmp/symm",), flags="builds solved"),
        Command("docs", "", "build the reference of all headers, in build/docs/html", "checks:docs",
                flags="solved"),
        Command("format", "", "format the code with clang-format; --check: check format and line "
                "length", "checks:formats", (), {"--check": "only report what is wrong"}),
        Command("lint", "", "check Python with ruff and mypy, and the shell's scripts with "
                "shellcheck", "checks:lint"),
        Command("tidy", "", "check the sources with clang-tidy", "checks:tidy", flags="solved"),
        Command("pages", "[NN...]", "run the commands that the pages show, and compare their "
                "output", "pages:main", ("a lab's number; else all pages",), flags="solved"),
        Command("matrix", "[ROW...]", "with other compilers, systems and containers, run lab 06, "
                "explore and check, and write the tables of what was seen", "matrix:main",
                ("a row's name: g++-11; else all",), {"--check": "run each row's last command, and "
                 "compare with the tables"}),
        Command("play", "[ID...]", "check the course itself: every stub, wrong answer and solution",
                "play:main", ("an exercise (05.2), a lab (05), or bad: answers that hang, crash "
                "...; else all",), {"--others": "also each rule on the answers of all other rules "
                                    "of its exercise", "--backwards": "the last exercise first"}),
        Command("commands", "", "write the compile commands of all files for editors, as `start` "
                "does", "builds:commands"),
        Command("release", "VERSION [DATE]", "check that all files have this version, and tag it "
                "(CONTRIBUTING.md)", "release:main", ("a version: 0.3.0", "the changelog's, if "
                "that is not today's: 2027-01-31")),
        Command("setup", "", "install what all these commands need, without building anything",
                "builds:setup")),
}
COMMANDS = {command.name: command for part in TABLE.values() for command in part}


def overview() -> str:
    """What `./lab help` prints."""
    lines = [f"usage: ./lab COMMAND [--preset {PRESETS}] [...]",
             "       ./lab COMMAND --help"]
    for title, commands in TABLE.items():
        lines += ["", f"{title}:"]
        for command in commands:
            first, *rest = textwrap.wrap(command.help, 72)
            lines += [f"  {f'{command.name} {command.usage}':24}  {first}",
                      *(" " * 28 + line for line in rest)]
    return "\n".join([*lines, "", ABOUT])


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(message, 2)


def parser_of(command: Command) -> Parser:
    parser = Parser(prog=f"./lab {command.name}", description=command.help, allow_abbrev=False,
                    epilog="ARGS are the program's." * command.takes_arguments())
    for word, name, text in command.arguments():
        parser.add_argument(name, metavar=word.strip("[.]"), help=text,
                            nargs="*" if "..." in word else "?")
    for option, text in command.options.items():
        parser.add_argument(option, action="store_true", help=text)
    if "builds" in command.flags:
        parser.add_argument("--preset", metavar="NAME", help=f"of CMake: {PRESETS}")
        parser.add_argument("--arch", metavar="NAME", help="aarch64: build for Arm processors, and "
                            "run that under qemu; of the tests, those labelled quick")
    usage = f"./lab {command.name} {command.usage}".rstrip()
    options = "".join(f" [{option}]" for option in command.options)
    parser.usage = usage + options + " [--preset NAME | --arch NAME]" * ("builds" in command.flags)
    return parser


def parse(argv: list) -> argparse.Namespace:
    """The arguments of a command, and the command itself. Raises Failure."""
    command = COMMANDS.get(argv[0])
    if command is None:
        raise Failure(f"there is no command '{argv[0]}': choose one of {' '.join(COMMANDS)}", 2)
    words, arguments = argv[1:], []
    if command.takes_arguments() and "--" in words:
        at = words.index("--")
        words, arguments = words[:at], words[at + 1:]
    args, unknown = parser_of(command).parse_known_intermixed_args(words)
    if unknown:
        hint = ": a program's arguments come after --" * command.takes_arguments()
        raise Failure(f"unexpected word '{unknown[0]}'{hint or f': see ./lab {argv[0]} --help'}", 2)
    for word, name, text in command.arguments():
        if not word.startswith("[") and getattr(args, name) is None:
            raise Failure(f"pass {text}", 2)
    args.command, args.arguments = command, arguments
    return args


def prepare(args, argv: list):
    """What several commands need before they start."""
    flags = args.command.flags
    if flags:
        import builds
    if "builds" in flags:
        args.preset = builds.of_architecture(args.arch) if args.arch else args.preset
        builds.chosen(args.preset)
    if "solved" in flags:
        builds.use_solved(args.command.name, argv)


def main() -> int:
    with contextlib.suppress(OSError):  # a folder that is gone
        tool.caller = Path.cwd()
    argv = sys.argv[1:]
    if argv[:1] == ["--preset"] and len(argv) > 2:  # ./lab --preset debug run 06
        argv = [argv[2], *argv[:2], *argv[3:]]
    elif argv[:1] and argv[0].startswith("--preset=") and len(argv) > 1:
        argv = [argv[1], argv[0], *argv[2:]]
    if not argv or argv[0] in ("help", "--help", "-h"):
        print(overview(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ./lab learn | head
    try:
        args = parse(argv)
        os.chdir(ROOT)
        prepare(args, argv)
        module, function = args.command.function.split(":")
        status = getattr(importlib.import_module(module), function)(args) or 0
        return status if status >= 0 else 128 - status  # negative: the number of a signal
    except (Failure, OSError) as error:
        print(f"./lab: {tool.told(error)}", file=sys.stderr)
        return getattr(error, "status", 1)


if __name__ == "__main__":
    tool.run(main)
