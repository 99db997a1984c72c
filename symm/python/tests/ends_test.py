"""Tests of how communicators end: with their interpreter, by Ctrl-C, and in forked children.

Each case is a program of two processes that fork before they use the library. Rank 0 ends in the
case's way while a call of its own waits for rank 1, which lives, and says what it sees."""

import os
import signal
import subprocess
import sys
import time
import unittest

BEGIN = """
import os, signal, sys, threading, time
import numpy, symm
name = f"ends {os.getpid()}"

def ones():
    return numpy.ones(1000, "float32")

def waits():
    # A call that waits is in a thread of its own, so that Ctrl-C is noticed.
    return "symm" in [thread.name for thread in threading.enumerate()]

def interrupt_when_it_waits():
    while waits():  # the thread of an earlier call may not have ended yet
        time.sleep(0.001)
    def run():
        while not waits():
            time.sleep(0.001)
        global sent
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=run, daemon=True).start()

def expect_interrupt(call):
    interrupt_when_it_waits()
    try:
        call()
    except KeyboardInterrupt:
        assert time.monotonic() - sent < 10
        print("interrupted", flush=True)
"""

PEER = """
has_result, tell = os.pipe()
child = os.fork()
if child != 0:
    c = symm.Communicator(1, 2, name)
    c.all_reduce(ones())
    c.synchronize()
    os.write(tell, b"x")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    c.all_reduce(ones())
    try:
        c.synchronize()
        print("peer has a result")
    except symm.SymmError as error:
        print(f"{type(error).__name__}: {error}".replace(str(child), "N").split(" while")[0])
    print("rank 0 ended with", status)
    c.destroy()
    sys.exit()
c = symm.Communicator(0, 2, name)
c.all_reduce(ones())
c.synchronize()
os.read(has_result, 1)
"""

IN_FLIGHT = PEER + "c.all_reduce(ones())\n"

PARENT = """
c = symm.Communicator(0, 1, name)
x = ones()
c.all_reduce(x)
c.synchronize()

def in_child(body):
    pid = os.fork()
    if pid != 0:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    body()
    sys.exit(0)
"""
GOES_ON = """
c.all_reduce(x)
c.synchronize()
c.destroy()
print("parent goes on")
"""

ABORTED = "RankError: rank 0 failed: it was aborted\nrank 0 ended with "
GONE = "RankError: rank 0 (pid N) closed its connection\nrank 0 ended with 0"

#: The program, and what it prints.
CASES = {
    "the end of the program": (IN_FLIGHT, ABORTED + "0"),
    "sys.exit": (IN_FLIGHT + "sys.exit(3)", ABORTED + "3"),
    "an exception": (IN_FLIGHT + "raise RuntimeError", ABORTED + "1"),
    "an exception in a with block": (IN_FLIGHT + "with c:\n    raise RuntimeError", ABORTED + "1"),
    "sys.exit in a with block": (IN_FLIGHT + "with c:\n    sys.exit(4)", ABORTED + "4"),
    "a collected one": (IN_FLIGHT + "del c\nprint('collected', flush=True)\nos._exit(5)",
                        "collected\n" + ABORTED + "5"),
    "an exception in a function":
        (IN_FLIGHT + "def f(c):\n    1 / 0\nd = [c]\ndel c\nf(d.pop())", ABORTED + "1"),
    "a daemon thread that waits":
        (IN_FLIGHT + """
threading.Thread(target=c.synchronize, daemon=True).start()
while not c._comm._user:
    time.sleep(0.001)
""", ABORTED + "0"),
    "calls that have ended": (PEER, GONE),
    "calls that end in time":
        ("""
called, call = os.pipe()
rank = 0 if os.fork() else 1
c, x = symm.Communicator(rank, 2, name), ones()
if rank == 1:
    os.read(called, 1)
c.all_reduce(x)
if rank == 0:
    os.write(call, b"x")
    c.synchronize()
    print("sum", x[0])
""", "sum 2.0"),
    "Ctrl-C in synchronize()":
        (IN_FLIGHT + "interrupt_when_it_waits()\nc.synchronize()", ABORTED + "-2"),
    "Ctrl-C in synchronize(), caught":
        (IN_FLIGHT + """
expect_interrupt(c.synchronize)
try:
    c.synchronize()
except symm.SymmError as error:
    print(error)
c.destroy()
""", "interrupted\nthe kernel was aborted before any of its waits had timed out\n" + ABORTED + "0"),
    "Ctrl-C in synchronize(), and another thread gets the signal":
        (IN_FLIGHT + """
def synchronize():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the thread that sends it runs
    c.synchronize()
expect_interrupt(synchronize)
c.destroy()
""", "interrupted\n" + ABORTED + "0"),
    "Ctrl-C in destroy()":
        (IN_FLIGHT + "expect_interrupt(c.destroy)\nc.destroy()", "interrupted\n" + ABORTED + "0"),
    "Ctrl-C in empty()":
        (PEER + "expect_interrupt(lambda: c.empty(3))\nc.destroy()",
         "interrupted\n" + ABORTED + "0"),
    "Ctrl-C in a first large call":
        (PEER + """
import numpy as np
x, out = np.ones(1 << 24, "f4"), np.empty(1 << 25, "f4")
expect_interrupt(lambda: c.all_gather(x, out))
c.destroy()
""", "interrupted\n" + ABORTED + "0"),
    "Ctrl-C in a first RMSNorm":
        (PEER + """
import numpy as np
x, residual, out = (np.ones((1, 512), "f4") for _ in range(3))
expect_interrupt(lambda: c.all_reduce_rms_norm(x, residual, np.ones(512, "f4"), out))
c.destroy()
""", "interrupted\n" + ABORTED + "0"),
    "Ctrl-C in the constructor":
        ("interrupt_when_it_waits()\nsymm.Communicator(0, 2, name)", ""),
    "Ctrl-C in the constructor, and the rank comes then":
        ("""
ready, begin = os.pipe()
child = os.fork()
if child == 0:
    os.read(ready, 1)
    try:
        c = symm.Communicator(1, 2, name)
        c.all_reduce(ones())
        c.synchronize()
    except symm.RankError as error:
        print("rank 0" in str(error), flush=True)
    sys.exit()
expect_interrupt(lambda: symm.Communicator(0, 2, name))
os.write(begin, b"x")
os.waitpid(child, 0)
""", "interrupted\nTrue"),
    "Ctrl-C in an allgather":
        ("""
def allgather(mine):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
try:
    symm.Communicator.from_allgather(0, 2, allgather)
except KeyboardInterrupt:
    print("interrupted")
""", "interrupted"),
    "an allgather in the caller's thread":
        ("""
threads = []
def allgather(mine):
    threads.append(threading.current_thread())
    return [mine]
symm.Communicator.from_allgather(0, 1, allgather).destroy()
print(threads == [threading.current_thread()])
""", "True"),
    "a child that ends": (PARENT + "print(in_child(lambda: 0))" + GOES_ON, "0\nparent goes on"),
    "a child that leaves the with block":
        (PARENT + "with c:\n    print(in_child(lambda: sys.exit(6)))" + GOES_ON.replace(
            "\n", "\n    "), "6\nparent goes on"),
    "a child that ends in the with block's exception":
        (PARENT + """
try:
    with c:
        pid = os.fork()
        if pid == 0:
            raise ValueError
        os.waitpid(pid, 0)
        c.all_reduce(x)
        c.synchronize()
        print("parent goes on")
except ValueError:
    print("child", flush=True)
""", "child\nparent goes on"),
    "a child that calls":
        (PARENT + """
def body():
    for call in (lambda: c.all_reduce(x), c.synchronize, lambda: c.empty(3), lambda: symm.empty(3),
                 lambda: c.release(x), c.async_error):
        try:
            call()
        except ValueError as error:
            print(str(error).replace(str(os.getppid()), "1"), flush=True)
    c.abort()
    c.destroy()
print(in_child(body))""" + GOES_ON,
         6 * ("the communicator belongs to process 1, from which this one was forked: start "
              "ranks as new programs (in multiprocessing by \"spawn\")\n") + "0\nparent goes on"),
    "a child that collects": (PARENT + """
def body():
    global c, x
    del c, x
print(in_child(body))""" + GOES_ON, "0\nparent goes on"),
    "a process of multiprocessing":
        (PARENT + """
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=lambda: c.destroy())
process.start()
process.join()
print(process.exitcode)""" + GOES_ON, "0\nparent goes on"),
}


class Ends(unittest.TestCase):

    def test_cases(self):
        start = time.monotonic()
        running = {name: subprocess.Popen(
            [sys.executable, "-B", "-c", BEGIN + program], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True) for name, (program, _) in CASES.items()}
        for name, process in running.items():
            with self.subTest(name):
                try:
                    output, errors = process.communicate(
                        timeout=max(1, start + 60 - time.monotonic()))
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
                self.assertEqual(output.strip(), CASES[name][1], errors)
                self.assertGreaterEqual(process.returncode, -2, errors)



if __name__ == "__main__":
    unittest.main()
