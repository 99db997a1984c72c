"""Tests of the package symm as it is installed, on emulated GPUs, with NumPy: without PyTorch."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy
import symm
from ranks import on_ranks, values


def float8_values(bits):
    """Numbers of float8 (e4m3): a sign, four bits of exponent and three behind the first one."""
    exponents, digits = (bits >> 3 & 15).astype(int), (bits & 7).astype(float)
    sizes = numpy.where(exponents == 0, digits * 2.0**-9, (1 + digits / 8) * 2.0**(exponents - 7))
    return numpy.where(bits & 128, -sizes, sizes)


class Calls(unittest.TestCase):

    def test_all_types_in_windows_and_elsewhere(self):
        def body(c):
            for dtype in set(symm.TYPES) - {"bfloat16"}:
                for make in (c.empty, numpy.empty):
                    x, out = make((7, 11), dtype), make((7, 11), numpy.dtype(dtype))
                    self.assertEqual((x.shape, x.dtype.name), ((7, 11), dtype))
                    x[:] = values(c.rank, x.shape, dtype)
                    out[:] = 99
                    self.assertIs(c.all_reduce(x, out), out)
                    c.synchronize()
                    expected = sum(values(r, x.shape, dtype) for r in range(c.ranks))
                    numpy.testing.assert_array_equal(out, expected, dtype)
                    numpy.testing.assert_array_equal(x, values(c.rank, x.shape, dtype))
        on_ranks(3, body)

    def test_operations_in_place(self):
        def body(c):
            for op, reduce in {"sum": numpy.sum, "prod": numpy.prod, "max": numpy.max,
                               "min": numpy.min, "avg": numpy.mean}.items():
                x = values(c.rank, (101,), "float32")
                c.all_reduce(x, op=op)
                c.synchronize()
                every = [values(r, (101,), "float32") for r in range(c.ranks)]
                numpy.testing.assert_array_equal(x, reduce(every, axis=0), op)
        on_ranks(2, body)

    def test_rms_norm(self):
        def body(c):
            for dtype in ("float32", "float16"):
                x, residual, out = (c.empty((3, 512), dtype) for _ in range(3))
                weight = c.empty(512, dtype)
                x[:], weight[:], out[:] = values(c.rank, x.shape, dtype), values(0, 512, dtype), 99
                residual[:] = before = values(2, x.shape, dtype) / 4
                self.assertIs(c.all_reduce_rms_norm(x, residual, weight, out, epsilon=50), out)
                c.synchronize()
                all_x = sum(values(r, x.shape, "float64") for r in range(c.ranks)) + before
                numpy.testing.assert_array_equal(residual, all_x)
                rms = numpy.sqrt((all_x ** 2).mean(axis=1, keepdims=True) + 50)
                numpy.testing.assert_allclose(out, all_x / rms * weight, rtol=1e-3)
        on_ranks(3, body)

    def test_rms_norm_options(self):
        def body(c):
            shape, dtype = (5, 1024), "float16"
            x, out = c.empty(shape, dtype), numpy.empty(shape, "uint8")
            x[:] = values(c.rank, shape, dtype)
            weight, bias = (values(r, 1024, "float32") * 1.001 for r in (3, 4))
            scale = numpy.full(1, 0.25, "float32")
            for residual in (None, c.empty(shape, dtype)):
                before = 0
                if residual is not None:
                    residual[:] = before = values(2, shape, dtype) / 4
                c.all_reduce_rms_norm(x, residual, weight, out, weight_offset=1, bias=bias,
                                      out_scale=scale)
                c.synchronize()
                all_x = sum(values(r, shape, "float64") for r in range(c.ranks)) + before
                rms = numpy.sqrt((all_x ** 2).mean(axis=1, keepdims=True) + 1e-5)
                expected = (all_x / rms * (weight + 1) + bias) / scale
                numpy.testing.assert_allclose(float8_values(out), expected, rtol=0.0626,
                                              atol=2**-9)
        on_ranks(2, body)

    def test_halves(self):
        def body(c):
            for make in (c.empty, numpy.empty):
                x, out = make((c.ranks, 33), "int32"), make(33, "int32")
                x[:] = values(c.rank, x.shape, "int32")
                self.assertIs(c.reduce_scatter(x, out, op="max"), out)
                c.synchronize()
                every = [values(r, x.shape, "int32")[c.rank] for r in range(c.ranks)]
                numpy.testing.assert_array_equal(out, numpy.max(every, axis=0))
                out[:] = values(c.rank, (33,), "int32")
                c.all_gather(out, x)
                c.synchronize()
                for r in range(c.ranks):
                    numpy.testing.assert_array_equal(x[r], values(r, (33,), "int32"))
                c.all_gather(x[c.rank], x)  # in place
                c.synchronize()
                numpy.testing.assert_array_equal(x[0], values(0, (33,), "int32"))
        on_ranks(3, body)

    def test_root(self):
        def body(c):
            for make in (c.empty, numpy.empty):
                for root in range(c.ranks):
                    x, out = make(33, "int32"), make(33, "int32")
                    x[:], out[:] = values(c.rank, (33,), "int32"), -1
                    self.assertIs(c.broadcast(x, out, root=root), out)
                    c.synchronize()
                    numpy.testing.assert_array_equal(out, values(root, (33,), "int32"))
                    out[:] = -1
                    c.reduce(x, out, op="min", root=root)
                    c.synchronize()
                    every = [values(r, (33,), "int32") for r in range(c.ranks)]
                    expected = numpy.min(every, axis=0) if c.rank == root else -1
                    numpy.testing.assert_array_equal(out, expected)
                    c.broadcast(x, root=root)  # in place
                    c.synchronize()
                    numpy.testing.assert_array_equal(x, values(root, (33,), "int32"))
            with self.assertRaisesRegex(ValueError, "root is 3: it must be 0 to 2"):
                c.reduce(x, root=3)
        on_ranks(3, body)

    def test_empty_is_of_this_threads_last_communicator(self):
        with self.assertRaisesRegex(ValueError, "this thread has no communicator"):
            symm.empty(3)

        def body(c):
            x = symm.empty(3)
            x[:] = c.rank + 1
            c.all_reduce(x)
            c.synchronize()
            self.assertEqual(x.tolist(), [3, 3, 3])
            self.assertEqual(symm.empty((2, 0), "int8").shape, (2, 0))
            c.release(x)
            with self.assertRaisesRegex(ValueError, "window"):
                c.release(values(0, (3,), "float32"))
        on_ranks(2, body)

    def test_an_array_keeps_its_communicator(self):
        communicator = symm.Communicator(0, 1, f"test {os.getpid()} kept")
        x = communicator.empty(1000)
        del communicator
        gc.collect()
        x[:] = 5
        self.assertEqual(x.sum(), 5000)


class Ranks(unittest.TestCase):

    def test_from_allgather(self):
        for ranks in (1, 3):
            self.meet_by_allgather(ranks)

    def meet_by_allgather(self, ranks):
        parts, barrier = [None] * ranks, threading.Barrier(ranks)

        def run(rank):
            def allgather(mine):
                parts[rank] = mine
                barrier.wait(60)
                return list(parts)
            with symm.Communicator.from_allgather(rank, ranks, allgather) as c:
                self.assertEqual((c.rank, c.ranks), (rank, ranks))
                x = values(rank, (9,), "int64")
                c.all_reduce(x)
                c.synchronize()
                self.assertEqual(x[0], ranks * (ranks + 1) // 2)
        with ThreadPoolExecutor(ranks) as threads:
            list(threads.map(run, range(ranks)))

    def test_an_exception_ends_the_calls_of_all_ranks(self):
        def body(c):
            if c.rank == 1:
                raise ZeroDivisionError
            c.all_reduce(values(0, (3,), "float32"))
            with self.assertRaisesRegex(symm.RankError, "rank 1 failed: it was aborted"):
                c.synchronize()
            self.assertIn("rank 1", c.async_error())
        start = time.monotonic()
        with self.assertRaises(ZeroDivisionError):
            on_ranks(2, body)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_timeout_names_the_rank(self):
        barrier = threading.Barrier(2)

        def body(c):
            if c.rank == 0:
                c.all_reduce(values(0, (3,), "float32"))
                with self.assertRaisesRegex(symm.SymmError, "waited 0.2 s .* from rank 1"):
                    c.synchronize()
            barrier.wait(60)
        on_ranks(2, body, timeout=0.2)

    def test_a_killed_process_ends_the_others(self):
        program = """if True:
            import os, signal, numpy, symm
            c = symm.Communicator.from_launcher()
            x = c.empty(1000)
            x[:] = c.rank + 1
            c.all_reduce(x)
            c.synchronize()
            assert (x == 6).all()
            if c.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            c.all_reduce(x)
            try:
                c.synchronize()
            except symm.RankError as error:
                print(error)
            c.destroy()"""
        start = time.monotonic()
        environment = {**os.environ, "SYMM_LAUNCHER": "", "WORLD_SIZE": "3",
                       "SYMM_BOOTSTRAP": f"test {os.getpid()}"}
        processes = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                                      env={**environment, "RANK": str(rank)}, text=True)
                     for rank in range(3)]
        outputs = [process.communicate(timeout=100)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, -signal.SIGKILL, 0])
        for rank in (0, 2):
            self.assertIn("rank 1", outputs[rank])
        self.assertLess(time.monotonic() - start, 60)

    def test_the_demo(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-m", "symm.demo", *arguments], text=True,
                                  capture_output=True, timeout=100)
        self.assertIn("rank 1, on an emulated GPU: 1000 sums are right: 1 + 2 = 3\n", run().stdout)
        self.assertEqual(run("5").stdout.count("1 + 2 + 3 + 4 + 5 = 15"), 5)
        for wrong in ("0", "17", "two"):
            self.assertEqual(run(wrong).returncode, 2)
        with mock.patch.dict(os.environ, {"SYMM_TIMEOUT": "soon"}):
            failed = run()
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("error: SYMM_TIMEOUT=soon", failed.stderr)


if __name__ == "__main__":
    unittest.main()
