#!/usr/bin/env python3
"""attack.py PROGRAM [TIMES]: runs 2 machines of 2 ranks, TIMES times for each attack. At a random
moment a rank is killed, stopped, or late, or a machine makes calls with another count. Each run
must report what happened and end within its limit plus ten seconds; a late rank's run goes on."""

import os
import random
import re
import signal
import subprocess
import sys
import time

LIMIT = 3
ENVIRONMENT = {**os.environ, "SYMM_DRIVER": "emulated", "SYMM_TIMEOUT": str(LIMIT),
               "SYMM_RANKS_PER_NODE": "2", "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_mpi_yield_when_idle": "1"}


def start(program: str, *counts: str) -> subprocess.Popen:
    """Starts a run whose machine m makes endless calls of counts[m] bytes."""
    command = ["mpirun"]
    for count in counts:
        command += [":"] if len(command) > 1 else []
        command += ["-np", "2", program, "--bytes", count, "-n", "100000000"]
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def calling(run: subprocess.Popen) -> subprocess.Popen:
    """Waits for a random moment of the run's calls: what comes before is MPI's own start."""
    output = ""
    while "bytes" not in output:
        line = run.stdout.readline()
        if not line:
            sys.exit(f"the run ended before its first call, status {run.wait()}:\n{output}")
        output += line
    time.sleep(random.uniform(0, 0.8))
    return run


def a_rank(run: subprocess.Popen) -> int:
    ranks = subprocess.run(["pgrep", "-P", str(run.pid)], text=True, capture_output=True,
                           check=True).stdout.split()
    return int(random.choice(ranks))


def end(run: subprocess.Popen, expected: str) -> None:
    began = time.time()
    try:
        output = run.communicate(timeout=LIMIT + 10)[0]
    except subprocess.TimeoutExpired:
        subprocess.run(["pkill", "-9", "-P", str(run.pid)], check=False)
        run.kill()
        sys.exit(f"the run did not end within {LIMIT + 10} s:\n{run.communicate()[0]}")
    if run.returncode == 0 or not re.search(expected, output):
        sys.exit(f"status {run.returncode}, and no match of '{expected}' in\n{output}")
    slowest[0] = max(slowest[0], time.time() - began)


def killed(program: str) -> None:
    run = calling(start(program, "4K", "4K"))
    os.kill(a_rank(run), signal.SIGKILL)
    end(run, "signal 9|lost|is gone|no word from")


def stopped(program: str) -> None:
    run = calling(start(program, "4K", "4K"))
    os.kill(a_rank(run), signal.SIGSTOP)
    end(run, "did not arrive|no word from|waited")


def late(program: str) -> None:
    run = calling(start(program, "4K", "4K"))
    rank = a_rank(run)
    os.kill(rank, signal.SIGSTOP)
    time.sleep(random.uniform(0.1, LIMIT / 3))
    os.kill(rank, signal.SIGCONT)
    time.sleep(0.3)
    if run.poll() is not None:
        sys.exit(f"the run did not continue:\n{run.communicate()[0]}")
    os.kill(a_rank(run), signal.SIGKILL)
    end(run, "signal 9|lost|is gone|no word from")


def different_counts(program: str) -> None:
    counts = random.sample(range(1, 3000), 2)
    run = start(program, *(str(4 * count) for count in counts))
    end(run, "machine 0 makes call 1 ")


slowest = [0.0]
if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would lose exit statuses
    for attack in killed, stopped, late, different_counts:
        slowest[0] = 0
        times = int(sys.argv[2]) if len(sys.argv) > 2 else 2
        for _ in range(times):
            attack(sys.argv[1])
        print(f"{attack.__name__}: {times} times, ended after {slowest[0]:.1f} s at most")
