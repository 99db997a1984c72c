"""Tests of what the package refuses, and of the texts that say why."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy
import symm
from ranks import alone, on_ranks, values

SOURCES = Path(__file__).parents[1]


class Refusals(unittest.TestCase):

    def test_calls(self):
        x = values(0, (4, 4), "float32")

        def body(c):
            rows, weight = c.empty((2, 512)), c.empty(512)
            for error, says, call in (
                    (TypeError, "float32 and float64", lambda: c.all_reduce(x, x.astype("f8"))),
                    (ValueError, r"shape \(4, 4\) does not fit an output of shape \(4,\)",
                     lambda: c.all_reduce(x, x[0].copy())),
                    (ValueError, r"of shape \(16,\), for 2 ranks: output must have shape \(4, 4\)",
                     lambda: c.all_reduce(x, x.reshape(16))),
                    (ValueError, r"for 2 ranks: input must have shape \(2, 4, 4\) or \(8, 4\)",
                     lambda: c.reduce_scatter(x, x.copy())),
                    (ValueError, r"input must have shape \(2, 2, 4\) or \(4, 4\)",
                     lambda: c.reduce_scatter(x.reshape(16), x[:2].copy())),
                    (ValueError, r"output must have shape \(2, 4, 4\) or \(8, 4\)",
                     lambda: c.all_gather(x, numpy.empty((4, 8), "float32"))),
                    (ValueError, r"residual \(2, 512\), .*weight \(1024,\): .* one shape",
                     lambda: c.all_reduce_rms_norm(rows, rows, c_weights, rows)),
                    (ValueError, r"out \(512,\), .*: x, residual and out must have one shape",
                     lambda: c.all_reduce_rms_norm(rows, rows, weight, rows[0])),
                    (ValueError, "more than one element", lambda: c.all_reduce_rms_norm(
                        rows, None, weight, numpy.empty((2, 512), "uint8"), out_scale=weight)),
                    (TypeError, "out is of type float32: it must be of type float8_e4m3fn or uint8",
                     lambda: c.all_reduce_rms_norm(rows, None, weight, rows, out_scale=weight[:1])),
                    (TypeError, "out is of type uint8: it must be of type float32",
                     lambda: c.all_reduce_rms_norm(rows, None, weight, rows.astype("uint8"))),
                    (TypeError, "weight is of type float16: it must be of type float32",
                     lambda: c.all_reduce_rms_norm(rows, rows, weight.astype("float16"), rows)),
                    (TypeError, "bias is of type float16: it must be of type float32",
                     lambda: c.all_reduce_rms_norm(rows, rows, weight, rows,
                                                   bias=weight.astype("float16"))),
                    (ValueError, r"bias \(1024,\): x, residual and out must have one shape",
                     lambda: c.all_reduce_rms_norm(rows, rows, weight, rows, bias=c_weights)),
                    (TypeError, "weight_offset is None, not a number",
                     lambda: c.all_reduce_rms_norm(rows, rows, weight, rows, weight_offset=None)),
                    (ValueError, "512 to 16384 elements", lambda: c.all_reduce_rms_norm(
                        rows[0, :256], rows[1, :256], weight[:256], weight[256:])),
                    (TypeError, "epsilon is 'x', not a number",
                     lambda: c.all_reduce_rms_norm(rows, rows, weight, rows, epsilon="x")),
                    (ValueError, "no operation 'mean'", lambda: c.all_reduce(x, op="mean")),
                    (ValueError, "no operation None", lambda: c.all_reduce(x, op=None)),
                    (ValueError, "window", lambda: c.release(x))):
                with self.assertRaisesRegex(error, says):
                    call()
            y = values(c.rank, (4,), "float32")
            c.all_reduce(y)  # it still works
            c.synchronize()
            self.assertEqual(y[0], 3)
        c_weights = numpy.ones(1024, "float32")
        on_ranks(2, body)

    def test_empty(self):
        def body(c):
            for error, says, call in (
                    (TypeError, "type complex64 are", lambda: c.empty(3, "complex64")),
                    (TypeError, "type complex64 are", lambda: c.empty(3, numpy.complex64)),
                    (TypeError, "type object are", lambda: c.empty(3, object)),
                    (TypeError, "type None are", lambda: c.empty(3, None)),
                    (TypeError, r"float32 \(big-endian\)", lambda: c.empty(3, numpy.dtype(">f4"))),
                    (TypeError, "bfloat16", lambda: c.empty(3, "bfloat16")),
                    (TypeError, r"shape is \(4.0,\), not an integer or", lambda: c.empty((4.0,))),
                    (TypeError, "shape is 4.0, not", lambda: c.empty(4.0)),
                    (TypeError, "shape is None, not", lambda: c.empty(None)),
                    (ValueError, "negative", lambda: c.empty((3, -1))),
                    (ValueError, "has 18446744073709551620 bytes", lambda: c.empty(2**62 + 1)),
                    (ValueError, "dimension", lambda: c.empty((1,) * 100)),
                    (symm.SymmError, "OUT_OF_MEMORY", lambda: c.empty(1 << 40))):
                with self.assertRaisesRegex(error, says):
                    call()
            for shape in (numpy.int64(4), [numpy.int64(2), 2], 4, (2, 2)):
                self.assertEqual(c.empty(shape).size, 4)
        on_ranks(2, body)

    def test_interfaces_that_lie(self):
        class Lies:
            def __init__(self, **changes):
                self.__array_interface__ = numpy.zeros(4, "f4").__array_interface__ | changes

        with alone() as c:
            for error, says, changes in (
                    (ValueError, "more than any memory", {"shape": (2**62, 4)}),
                    (ValueError, "more than any memory", {"shape": (2**62 + 1, 4)}),
                    (ValueError, "negative", {"shape": (-4,)}),
                    (TypeError, r"shape is \(4.0,\), not", {"shape": (4.0,)}),
                    (ValueError, "address is 18446744073709551616", {"data": (2**64, False)}),
                    (TypeError, "has no address", {"data": (4096,)})):
                with self.assertRaisesRegex(error, says):
                    c.all_reduce(Lies(**changes))
            with self.assertRaisesRegex(TypeError, "is a class, not an array"):
                c.all_reduce(numpy.ndarray)

    def test_creation(self):
        def create(rank=0, ranks=1, name="x", **options):
            return lambda: symm.Communicator(rank, ranks, name, **options)

        for error, says, call in (
                (ValueError, "no rank 2 of 2", create(2, 2)),
                (TypeError, "rank is 0.0, not an integer", create(0.0)),
                (ValueError, "rank is 4294967296: it must be 0 to", create(2**32)),
                (TypeError, "ranks is '2', not an integer", create(0, "2")),
                (TypeError, "name is None, not a text", create(name=None)),
                (ValueError, "name is 'a.x00b': it must not contain NUL", create(name="a\0b")),
                (ValueError, "device is -1: it must be 0", create(device=-1)),
                (ValueError, "max_blocks is -1: it must be 0", create(max_blocks=-1)),
                (TypeError, "timeout is '1', not a number", create(timeout="1")),
                (ValueError, "timeout", create(timeout=-1)),
                (ValueError, "timeout", create(timeout=float("nan"))),
                (ValueError, "no launcher", symm.Communicator.from_launcher),
                (TypeError, "allgather is None, not a function",
                 lambda: symm.Communicator.from_allgather(0, 2, None)),
                (ValueError, "16 bytes|bytes of each of 2 ranks",
                 lambda: symm.Communicator.from_allgather(0, 2, lambda mine: [mine]))):
            with self.assertRaisesRegex(error, says):
                call()
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            symm.Communicator.from_allgather(0, 2, lambda mine: 1 / 0)
        with self.assertRaisesRegex(ImportError, "from_torch.. needs PyTorch"), \
                mock.patch.dict(sys.modules, {"torch": None}):
            symm.Communicator.from_torch()

    def test_a_destroyed_one(self):
        c, x = alone(), values(0, 3, "float32")
        c.destroy()
        c.destroy()
        for call in (lambda: c.all_reduce(x), lambda: c.empty(3), lambda: c.release(x),
                     c.synchronize, c.async_error, c.abort,
                     lambda: c.all_reduce_rms_norm(x, x.copy(), x.copy(), x.copy())):
            with self.assertRaisesRegex(ValueError, "^the communicator was destroyed$"):
                call()

    def test_copies(self):
        with alone() as c:
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "cannot be copied"):
                    copied(c)

    def test_a_second_thread(self):
        def body(c):
            if c.rank == 1:
                refused.wait(60)
                c.all_reduce(values(1, 3, "float32"))
                return
            c.all_reduce(values(0, 3, "float32"))
            with ThreadPoolExecutor(1) as other:
                waits = other.submit(c.synchronize)
                try:
                    while not c._comm._user:
                        time.sleep(0.001)
                    for call in (lambda: c.all_reduce(values(0, 3, "float32")), c.destroy):
                        with self.assertRaisesRegex(ValueError, "another call of this comm"):
                            call()
                finally:
                    refused.set()
                waits.result()
        refused = threading.Event()
        on_ranks(2, body)

    def test_without_numpy(self):
        with symm.Communicator(0, 1, f"test {os.getpid()} alone") as communicator, \
                mock.patch.dict(sys.modules, {"numpy": None}):
            with self.assertRaisesRegex(ImportError, "NumPy's, but numpy cannot be imported"):
                communicator.empty(3)


class Imports(unittest.TestCase):

    def test_the_sources_alone_say_what_to_do(self):
        failed = subprocess.run([sys.executable, "-c", "import symm"], text=True,
                                stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCES})
        self.assertRegex(failed.stderr, "ImportError: libsymm.so is not in .*python/symm: run `pip")

    def test_sources_and_library_in_two_folders(self):
        program = ("import importlib.util as i, sys; s = i.spec_from_file_location('symm', "
                   f"'{SOURCES}/symm/__init__.py', submodule_search_locations=['{SOURCES}/symm', "
                   f"{str(Path(symm.__file__).parent)!r}]); m = i.module_from_spec(s); "
                   "sys.modules['symm'] = m; s.loader.exec_module(m); print(m.__version__)")
        self.assertEqual(subprocess.check_output([sys.executable, "-B", "-c", program], text=True),
                         symm.__version__ + "\n")


if __name__ == "__main__":
    unittest.main()
