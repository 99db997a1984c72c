"""Tests of who keeps an array's memory alive, by each protocol of arrays, and of streams."""

import ctypes
import sys
import threading
import time
import unittest
import weakref
from types import SimpleNamespace
from unittest import mock

import numpy
import symm
from ranks import alone, on_ranks, values
from symm import _arrays, _dlpack, _library

COUNT = 5000
NOT_READY = 600  # a CUresult
driver = _library.c.symm_driver_function
driver.restype, driver.argtypes = ctypes.c_void_p, [ctypes.c_char_p]


def use_context(c: symm.Communicator):
    """Makes the communicator's context current in this thread, for cuda()."""
    context = ctypes.c_void_p()
    assert cuda("cuDevicePrimaryCtxRetain", ctypes.pointer(context), ctypes.c_int(c.device)) == 0
    assert cuda("cuCtxSetCurrent", context) == 0


def cuda(name: str, *arguments) -> int:
    """The result of a function of the emulated driver."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *map(type, arguments))(driver(name.encode()))(*arguments)


def pointer(value) -> ctypes.c_void_p:
    return ctypes.c_void_p(value)


def on_gpu(interface: dict) -> dict:
    return {**interface, "version": 3, "stream": None}


class Lazy:
    """Makes its memory when asked, as PIL's images do: only what it returns keeps that."""

    def __init__(self, rank: int):
        self.rank = rank
        self.make = lambda: values(rank, COUNT, "float32")


class HostInterface(Lazy):
    @property
    def __array_interface__(self):
        array = self.make()
        return {**array.__array_interface__, "keep": array}


class GpuInterface(Lazy):
    @property
    def __cuda_array_interface__(self):
        array = self.make()
        return {**on_gpu(array.__array_interface__), "keep": array}


class Dlpack(Lazy):
    def __dlpack__(self, **keywords):
        return self.make().__dlpack__(**keywords)

    def __dlpack_device__(self):
        return 1, 0


class OldDlpack(Dlpack):
    def __dlpack__(self):
        return self.make().__dlpack__()


class GpuDlpack(Dlpack):
    """NumPy's capsule, with the device of a GPU."""

    streams: list = []

    def __dlpack__(self, *, stream, **keywords):
        self.streams.append(stream)
        capsule = self.make().__dlpack__(**keywords)
        memory = _dlpack._pointer_of(capsule, b"dltensor_versioned")
        tensor = _dlpack._Versioned.from_address(memory).tensor
        tensor.device, tensor.device_id = self.__dlpack_device__()
        return capsule

    def __dlpack_device__(self):
        return _dlpack.CUDA, self.rank


class Kept(unittest.TestCase):

    def test_200_arrays_that_die_at_once(self):
        expected = sum(values(rank, COUNT, "float32") for rank in range(2))

        def body(c):
            wrong = {}
            kinds = (lambda rank: values(rank, COUNT, "float32"), HostInterface, Dlpack, OldDlpack,
                     GpuInterface, GpuDlpack)
            for _ in range(34):
                for kind in kinds:
                    # Kernels reach the memory of "GPUs" here.
                    c._emulated = kind not in (GpuInterface, GpuDlpack)
                    out = numpy.empty(COUNT, "float32")
                    result = out if c._emulated else OnGpu(out)
                    c.all_reduce(kind(c.rank), result, stream=c._own_stream)
                    poison = [numpy.full(COUNT, 77, "float32") for _ in range(3)]
                    c.synchronize(stream=c._own_stream)
                    del poison
                    wrong[kind] = wrong.get(kind, 0) + bool((out != expected).any())
            self.assertEqual([0] * len(kinds), list(wrong.values()))

        class OnGpu:
            def __init__(self, array):
                self.__cuda_array_interface__ = on_gpu(array.__array_interface__)

        on_ranks(2, body)

    def test_an_array_that_its_user_has_left(self):
        def body(c):
            kept = [weakref.ref(c.all_reduce(values(c.rank, (5000,), "float64"))) for _ in "1234"]
            self.assertTrue(all(array() is not None for array in kept[-1:]))
            c.synchronize()
            self.assertTrue(all(array() is None for array in kept))
        on_ranks(2, body)

    def test_arrays_go_when_their_calls_have_ended(self):
        with alone() as c:
            use_context(c)
            left = [weakref.ref(c.all_reduce(values(0, COUNT, "float32"))) for _ in range(200)]
            while (state := cuda("cuStreamQuery", pointer(c._own_stream))) == NOT_READY:
                time.sleep(0.001)
            self.assertEqual(state, 0)
            out = c.all_reduce(values(0, 3, "float32"))
            self.assertEqual([array for array in left if array() is not None], [])
            del out

    def test_a_refused_call_keeps_nothing(self):
        with alone() as c:
            x = values(0, 20, "float32")
            for refused in (x[:10], x[5:15]), (x[:10], numpy.empty(9, "float32")):
                with self.assertRaises(ValueError):
                    c.all_reduce(*refused)
            left = weakref.ref(x)
            del x, refused
            self.assertIsNone(left())

    def test_a_graph_keeps_its_arrays_until_the_end(self):
        with alone() as c:
            use_context(c)
            stream, graph = pointer(c._own_stream), pointer(None)
            relaxed = ctypes.c_int(2)
            x = values(0, COUNT, "float32")
            left = weakref.ref(x)
            self.assertEqual(cuda("cuStreamBeginCapture", stream, relaxed), 0)
            c.all_reduce(x, numpy.empty(COUNT, "float32"))
            self.assertEqual(cuda("cuStreamEndCapture", stream, ctypes.pointer(graph)), 0)
            self.assertEqual(cuda("cuGraphDestroy", graph), 0)
            del x
            c.synchronize()
            self.assertIsNotNone(left())
        self.assertIsNone(left())

    def test_the_table_for_tensors_of_pytorch(self):
        class Tensor:  # as torch.Tensor, which the tests do without
            shape, dtype = (3,), "torch.float32"

            def __init__(self, device, resizable):
                self.device, self.is_cuda = device, device.type == "cuda"
                self.storage, self.told = SimpleNamespace(resizable=lambda: resizable), []
                self.record_stream = self.told.append
                self.untyped_storage = lambda: self.storage
                self.is_contiguous, self.data_ptr = lambda: True, lambda: 4096

        gpu, cpu = SimpleNamespace(type="cuda", index=1), SimpleNamespace(type="cpu", index=None)
        current, other = _arrays.CallStream(7, "PyTorch's"), _arrays.CallStream(8)
        with mock.patch.dict(sys.modules, {"torch": SimpleNamespace(Tensor=Tensor)}):
            for device, resizable, stream, keeps, told in (
                    (gpu, True, current, False, ["PyTorch's"]),
                    (gpu, False, current, True, ["PyTorch's"]),  # memory of another library
                    (gpu, True, other, True, []),
                    (cpu, True, other, True, [])):
                tensor = Tensor(device, resizable)
                found = _arrays.memory_of(tensor, stream)
                self.assertEqual(found[:5], (4096, (3,), "float32", 1 if device is gpu else -2,
                                             True))
                self.assertIs(found.kept, tensor.storage if keeps else None)
                self.assertEqual(tensor.told, told)
            with self.assertRaisesRegex(TypeError, "on namespace.*, neither on a GPU nor in host"):
                _arrays.memory_of(Tensor(SimpleNamespace(type="meta"), True), other)


class Streams(unittest.TestCase):

    def test_a_call_follows_the_stream_of_its_array(self):
        may_end = threading.Event()

        class OnGpu:
            def __init__(self, array, stream):
                self.__cuda_array_interface__ = {**on_gpu(array.__array_interface__),
                                                 "stream": stream}

        def body(c):
            if c.rank == 1:
                may_end.wait(60)
                c.all_reduce(values(1, 3, "float32"))
                c.synchronize()
                return
            use_context(c)
            producer, out = pointer(c._own_stream), numpy.zeros(COUNT, "float32")
            c.all_reduce(values(0, 3, "float32"))  # which waits for rank 1
            with alone() as other:
                memory = other.empty(COUNT)
                memory[:] = 1
                two = numpy.float32(2).view("uint32")
                self.assertEqual(0, cuda(
                    "cuMemsetD32Async", ctypes.c_uint64(memory.ctypes.data),
                    ctypes.c_uint(int(two)), ctypes.c_size_t(COUNT), producer))
                other._emulated = False
                other.all_reduce(OnGpu(memory, producer.value), OnGpu(out, None),
                                 stream=other._own_stream)
                end, states = time.monotonic() + 0.1, set()
                while time.monotonic() < end:  # without an order it would end within that
                    states.add(cuda("cuStreamQuery", pointer(other._own_stream)))
                may_end.set()
                other.synchronize(other._own_stream)
            self.assertEqual((states, set(out.tolist())), ({NOT_READY}, {2.0}))

        def guarded(c):
            try:
                body(c)
            finally:
                may_end.set()

        on_ranks(2, guarded)

    def test_the_streams_that_protocols_name(self):
        x = values(0, 3, "float32")

        class OnGpu:
            __cuda_array_interface__ = {**x.__array_interface__, "version": 3, "stream": 2}
        self.assertEqual(_arrays.memory_of(OnGpu(), _arrays.CallStream(7)).producer, 2)
        OnGpu.__cuda_array_interface__["stream"] = 0
        with self.assertRaisesRegex(ValueError, "OnGpu names stream 0, .* disallows"):
            _arrays.memory_of(OnGpu(), _arrays.CallStream(7))
        GpuDlpack.streams.clear()
        for handle in 7, 0:
            _arrays.memory_of(GpuDlpack(0), _arrays.CallStream(handle))
        self.assertEqual(GpuDlpack.streams, [7, 1])  # 1: the protocol's default stream

    def test_streams_of_other_libraries(self):
        class CudaPython:
            def __init__(self, stream):
                self.stream = stream

            def __cuda_stream__(self):
                return self.stream

        class CuPy:
            def __init__(self, stream):
                self.ptr = stream

        with alone() as c:
            own = c._own_stream
            for stream in own, numpy.uint64(own), CudaPython((0, own)), CuPy(own):
                x = values(0, 3, "float32")
                c.all_reduce(x, stream=stream)
                c.synchronize(stream)
            for error, says, stream in (
                    (TypeError, "stream is 'x': pass a stream of PyTorch", "x"),
                    (TypeError, "stream is 1.0: pass", 1.0),
                    (TypeError, "version 5 of __cuda_stream__", CudaPython((5, own))),
                    (ValueError, "stream is -1: it must be 0", -1),
                    (ValueError, "stream is 1180591620717411303424: it must be", 2**70)):
                with self.assertRaisesRegex(error, says):
                    c.all_reduce(x, stream=stream)
                with self.assertRaisesRegex(error, says):
                    c.synchronize(stream)


if __name__ == "__main__":
    unittest.main()
