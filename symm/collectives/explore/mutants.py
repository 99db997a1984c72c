"""Explores both kernels as a project of its own, as they are, then with one fault each, which the
explorer must find.

usage: mutants.py PREFIX COMPILER     (where the package symm_explore is installed; clang++)
"""

import pathlib
import re
import shutil
import subprocess
import sys
from concurrent import futures

ALL_TO_ALL = "all_to_all_kernel.hpp"
RMS_NORM = "all_reduce_rms_norm_kernel.hpp"
ROW_NORM = "rms_norm_row.hpp"
OUTPUT = "rms_norm_output.hpp"
LONG_ROWS = "long_rows_kernel.hpp"
WRONG = "(element|received count) is wrong"
ROW = "(residual|output) is wrong"
STORES = "has given up, and stores"
# What is missing, the file, its text and what replaces it, the scene, and what is reported.
MUTANTS = [
    ("the wait for counts", ALL_TO_ALL,
     "if (counts != nullptr && !mailbox.receive(peers(), 0, elements)) {", "if (false) {",
     "all_to_all/counts/2x1", WRONG),
    ("the wait for data", ALL_TO_ALL,
     "if (!mailbox.receive(with_data & peers(), first_slot() + i, data)) {", "if (false) {",
     "all_to_all/equal/2x1", WRONG),
    ("the check of giving up", ALL_TO_ALL, "if (!mailbox.gave_up()) {", "{",
     "all_to_all/equal/2x1", STORES),
    ("the slot for the count", ALL_TO_ALL, "return counts != nullptr ? 1 : 0;", "return 0;",
     "all_to_all/counts/2x1", WRONG + "|no thread can go on"),
    ("the check of slots in use", ALL_TO_ALL,
     "i >= first_slot() + packs_in<Pack>(arriving[p])", "true",
     "all_to_all/counts/2x2", "no thread can go on"),
    ("the clearing of old packets", ALL_TO_ALL,
     "clear_unused(mailbox, arriving, epoch / 2 & (per_sender - 1));", "",
     "all_to_all/counts/2x1/clear", WRONG),
    ("the clearing of every second slot", ALL_TO_ALL, "epoch / 2 & (per_sender - 1)",
     "epoch & (per_sender - 1)", "all_to_all/counts/2x1/clear", WRONG),
    ("the clearing of the slot behind the last packet", ALL_TO_ALL,
     "i >= first_slot() + packs_in<Pack>(arriving[p])",
     "i > first_slot() + packs_in<Pack>(arriving[p])", "all_to_all/counts/2x1/clear", WRONG),
    ("the number of slots in use", ALL_TO_ALL, "mailbox.end(block, per_sender);",
     "mailbox.end(block, 0);", "all_to_all/counts/2x2", "no thread can go on"),
    ("the limit of a part", ALL_TO_ALL, "(elements < count ? elements : count) * element",
     "elements * element", "all_to_all/counts/2x1", WRONG + "|data race|has no memory"),
    ("the last barrier", ALL_TO_ALL, "if (end.arrive_and_wait()) {", "{",
     "all_to_all/windows/2x1", WRONG + "|data race"),
    ("the vote on the counts", ALL_TO_ALL, " && symm::AbortBarrier(block).sync(known)", "",
     "all_to_all/windows/2x2", STORES),
    ("the check of giving up, in windows", ALL_TO_ALL, " && !mailbox.gave_up(); ++step", "; ++step",
     "all_to_all/windows/2x2", STORES),
    ("the count of calls", ALL_TO_ALL, "mailbox.end(block, 1);", "", "all_to_all/windows/2x2",
     WRONG),
    ("the wait before the epoch is read", ALL_TO_ALL,
     """        Session mailbox(block, *this);
        const std::uint32_t epoch = epochs->next(block);
""", """        const std::uint32_t epoch = epochs->next(block);
        Session mailbox(block, *this);
""", "all_to_all/equal/2x1/overlap", r"data race on r\d.epochs"),
    ("the wait before the epoch is read", LONG_ROWS,
     """        typename MailedRows<T, kMost, kPlain>::Session mailbox(block, *this);
        symm::simt::Waiter waiter(this->timeout);
        const symm::simt::Warp warp(block);
        const std::uint32_t epoch = this->epochs->next(block);
""", """        const std::uint32_t epoch = this->epochs->next(block);
        typename MailedRows<T, kMost, kPlain>::Session mailbox(block, *this);
        symm::simt::Waiter waiter(this->timeout);
        const symm::simt::Warp warp(block);
""", "rms_norm/parts/2x1/overlap", r"data race on r\d.epochs"),
    ("the wait for packs", RMS_NORM, "if (!mailbox.receive(peers(), at, data)) {", "if (false) {",
     "rms_norm/packs/2x1", ROW),
    ("the sentinel", RMS_NORM, "mailbox.clear(p, at);", "", "rms_norm/packs/2x1", ROW),
    ("the check of giving up", RMS_NORM, " && !mailbox.gave_up(); ++step", "; ++step",
     "rms_norm/packs/2x1", STORES),
    ("the second half of the squares", ROW_NORM, "half_ = 1 - half_;", "",
     "rms_norm/packs/2x33/3rows", r"data race on r\d.shared"),
    ("the second half of the squares, of several blocks", ROW_NORM, "half_ = 1 - half_;",
     "half_ = block_.dim_blocks() > 1 ? 0 : 1 - half_;", "rms_norm/packs/2x33x2",
     r"data race on r\d.shared"),
    ("the squares of the second warp", ROW_NORM, "squares[i / lanes()] = of_part;",
     "squares[0] = of_part;", "rms_norm/packs/2x33/33p", ROW + r"|data race on r\d.shared"),
    ("the second round of the first warp", ROW_NORM, "squares[i / lanes()] = of_part;",
     "squares[i / lanes() % 2] = of_part;", "rms_norm/packs/2x64/65p",
     ROW + r"|data race on r\d.shared"),
    ("the row's sync", ROW_NORM, "if (!all_.sync(arrived)) {", "if (!arrived) {",
     "rms_norm/packs/2x33/3rows", r"data race on r\d.shared"),
    ("the row's vote", ROW_NORM, "all_.sync(arrived)", "all_.sync(true)",
     "rms_norm/packs/2x1", "gave up has stored a wrong output"),
    ("the other rounds' squares", ROW_NORM, "first < packs(); first += block_.size()",
     "first < 1; ++first", "rms_norm/packs/2x1/2rounds", ROW),
    ("the padding of the second half", ROW_NORM, "squares_->of_part[1][p] = 0;", "0;",
     "rms_norm/packs/2x2", "nothing has written|" + ROW),
    ("the padding of more than 16 parts", ROW_NORM, "(parts + kLanes - 1) / kLanes * kLanes",
     "parts", "rms_norm/packs/2x1/17p", "nothing has written|" + ROW),
    ("the other half of float weights", OUTPUT, "i * (kElements / kIn) + k / kIn", "i + k / kIn",
     "rms_norm/packs/2x1/halves", ROW),
    ("the count of calls", RMS_NORM, "mailbox.end(block, norm.rows() * norm.packs());", "",
     "rms_norm/packs/2x1", ROW + "|no thread can go on"),
    ("the check of giving up", RMS_NORM, " && !mailbox.gave_up(); ++step", "; ++step",
     "rms_norm/parts/2x1", STORES),
    ("the vote on the packs", LONG_ROWS, "if (warp.all(arrived) && warp.thread_rank() == 0) {",
     "if (warp.thread_rank() == 0) {", "rms_norm/parts/2x1x2",
     "gave up has stored a wrong output"),
    ("the other parts' squares", LONG_ROWS, "&squares[part.of_row + p]", "&squares[part.index]",
     "rms_norm/parts/2x1/2parts", ROW),
    ("the vote on the squares", LONG_ROWS, "if (warp.all(arrived) && part.has_pack) {",
     "if (arrived && part.has_pack) {", "rms_norm/parts/2x2", "gave up has stored a wrong output"),
    ("the clearing of old packets", LONG_ROWS, "clear_unused(block, epoch % most_parts);", "",
     "rms_norm/parts/2x1x2/old", ROW),
    ("the other warps of a block", LONG_ROWS, "block.dim_blocks() * warps(block)",
     "block.dim_blocks()", "rms_norm/parts/2x64x2", ROW + "|data race|no thread can go on"),
    ("the lanes without a pack", LONG_ROWS, "(!part.has_pack || this->receive(",
     "(this->receive(", "rms_norm/parts/2x64x2", "no thread can go on|has no memory"),
    ("the check of a pack's arrival", LONG_ROWS, "if (arrived && part.has_pack) {  // while",
     "if (part.has_pack) {  // while", "rms_norm/parts/2x1/2parts",
     "gave up has stored a wrong residual"),
    ("the check of a pack's arrival", RMS_NORM, "                if (arrived) {\n",
     "                {\n", "rms_norm/packs/2x1", "gave up has stored a wrong residual"),
    ("the last barrier", RMS_NORM, "if (!end.arrive_and_wait()) {", "if (false) {",
     "rms_norm/one_shot/2x1", r"data race on r\d.x"),
    ("the other ranks' residuals", RMS_NORM, "two_shots ? ranks : 1", "1",
     "rms_norm/two_shots/2x1", ROW),
    ("this rank's share", RMS_NORM, "(owner == rank) == own", "(owner == 0) == own",
     "rms_norm/two_shots/2x1", ROW + "|data race"),
    ("the block's share, for each of its warps", RMS_NORM,
     "static_cast<int>(block.group_index()) % ranks;",
     "static_cast<int>(block.group_index() + symm::simt::Warp(block).meta_group_rank()) % ranks;",
     "rms_norm/two_shots/2x33", ROW + "|data race|no thread can go on"),
    ("the count of barriers", RMS_NORM, "end.store_epoch();", "", "rms_norm/one_shot/2x1",
     "data race|no thread can go on"),
]


def run(*command, code=0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != code:
        sys.exit(f"{command} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def find(kernel: str, prefix: str, compiler: str) -> list:
    """Explores one kernel, in a copy of this folder. Returns what was found."""
    folder = pathlib.Path("your_own_mutants", kernel).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pathlib.Path(__file__).resolve().parents[1], folder)
    build = folder / "build"
    program = f"explore_{kernel}"
    run("cmake", "-S", str(folder / "explore"), "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}")
    run("cmake", "--build", str(build), "--target", program)
    told = [run(str(build / program), "--executions=1")]  # of each search; ./lab explore runs all
    for missing, name, old, new, scene, report in MUTANTS:
        if not scene.startswith(kernel):
            continue
        file = folder / name
        right = file.read_text(encoding="utf-8")
        if right.count(old) != 1:
            sys.exit(f"'{old}' is not once in {name}")
        file.write_text(right.replace(old, new), encoding="utf-8")
        run("cmake", "--build", str(build), "--target", program)
        found = run(str(build / program), scene, code=1)
        last = re.findall(r"=> (.*)", found)
        if not last or not re.search(report, last[-1]):
            sys.exit(f"without {missing}, in {scene}: '{report}' is not in\n{found}")
        told.append(f"{scene}, without {missing}: {last[-1]}")
        file.write_text(right, encoding="utf-8")
    return told


def main(prefix: str, compiler: str):
    with futures.ThreadPoolExecutor() as pool:
        found = pool.map(lambda kernel: find(kernel, prefix, compiler), ["all_to_all", "rms_norm"])
        told = [line for lines in found for line in lines]
    print(*told, sep="\n")
    print(f"{len(MUTANTS)} faults found")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
