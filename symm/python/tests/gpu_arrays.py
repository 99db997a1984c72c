"""Tests of arrays that die at once, and of streams, for a machine with a GPU: two ranks share it.

usage: gpu_arrays.py

Needs PyTorch; takes JAX and CuPy, too, if they are installed. Every call waits behind a kernel that
sleeps, while its input is freed and its memory used for something else. Exit status: 0 if all is
right. Where GPUs are emulated, arrays are in host memory, and CuPy is left out."""

import importlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # JAX would take most of the GPU's memory
os.environ["CUDA_MODULE_LOADING"] = "EAGER"  # README.md: the ranks are threads that share a GPU

import symm
import torch

COUNT, TURNS = 1 << 18, 40
EMULATED = symm.is_emulated()
DEVICE = "cpu" if EMULATED else "cuda:0"


def find(name: str):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


both = threading.Barrier(2)
jax, cupy = find("jax"), None if EMULATED else find("cupy")


class Rank:
    def __init__(self, communicator: symm.Communicator):
        self.communicator, self.rank = communicator, communicator.rank
        self.out = torch.zeros(COUNT, device=DEVICE)
        if not EMULATED:
            self.side = torch.cuda.Stream()

    def sleep(self, stream) -> None:
        """Keeps the stream busy for some milliseconds."""
        if not EMULATED:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(10_000_000)

    def call(self, x, side: bool) -> None:
        """A call, behind a kernel that sleeps."""
        stream = None
        if not EMULATED:
            stream = self.side if side else torch.cuda.current_stream()
            stream.wait_stream(torch.cuda.current_stream())  # which has zeroed `out`
            self.sleep(stream)
        self.communicator.all_reduce(x, self.out, stream=stream)

    def is_wrong(self, turn: int, side: bool = True) -> bool:
        self.communicator.synchronize(None if EMULATED or not side else self.side)
        wrong = not bool((self.out == 2 * turn + 1).all())
        self.out.zero_()
        return wrong

    # Each returns how many results were wrong.

    def dies_at_once(self, make, poison, side: bool) -> int:
        wrong, _ = 0, (make(0.0), poison())  # compiles their kernels, if they are not yet
        both.wait(60)
        for turn in range(TURNS):
            self.call(make(float(turn + self.rank)), side)
            others = [poison() for _ in range(4)]  # take the memory that was freed
            wrong += self.is_wrong(turn, side)
            del others
        return wrong

    def in_pytorch(self, side: bool) -> int:
        def full(value: float) -> torch.Tensor:
            return torch.full((COUNT,), value, device=DEVICE)
        return self.dies_at_once(full, lambda: full(77), side)

    def in_pytorchs_side_stream(self) -> int:
        """The tensor is of another stream than PyTorch's current one, which the call takes."""
        wrong = 0
        for turn in range(TURNS):
            x = torch.full((COUNT,), float(turn + self.rank), device=DEVICE)
            if EMULATED:
                self.call(x, False)
            else:
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side):
                    self.call(x, False)
            del x
            others = [torch.full((COUNT,), 77.0, device=DEVICE) for _ in range(4)]
            wrong += self.is_wrong(turn)
            del others
        return wrong

    def in_jax(self) -> int:
        device = jax.devices()[0]

        def full(value: float):
            return jax.device_put(jax.numpy.full(COUNT, value), device)
        return self.dies_at_once(full, lambda: full(77).block_until_ready(), True)

    def in_cupy(self) -> int:
        def full(value: float):
            return cupy.full(COUNT, value, "float32")
        return self.dies_at_once(full, lambda: full(77), True)

    def named_stream(self) -> int:
        """Another library's array, written in the stream that its interface names."""
        class Named:
            def __init__(self, tensor: torch.Tensor, stream):
                self.tensor = tensor
                self.__cuda_array_interface__ = {
                    "shape": tuple(tensor.shape), "typestr": "<f4", "version": 3, "strides": None,
                    "data": (tensor.data_ptr(), False), "stream": stream.cuda_stream}

        wrong, producer = 0, torch.cuda.Stream()
        x = torch.zeros(COUNT, device=DEVICE)
        torch.cuda.synchronize()
        for turn in range(TURNS):
            self.sleep(producer)
            with torch.cuda.stream(producer):
                x.fill_(turn + self.rank)
            self.side.wait_stream(torch.cuda.current_stream())  # which has zeroed `out`
            self.communicator.all_reduce(Named(x, producer), self.out, stream=self.side)
            wrong += self.is_wrong(turn)
        return wrong


def main() -> int:
    versions = [f"{name} {module.__version__}" for name, module in
                (("PyTorch", torch), ("JAX", jax), ("CuPy", cupy)) if module is not None]
    print(f"symm {symm.__version__}, {', '.join(versions)}, on "
          f"{'emulated GPUs' if EMULATED else torch.cuda.get_device_name()}")
    cases = {"PyTorch's current stream": lambda rank: rank.in_pytorch(False),
             "another stream than PyTorch's current one": lambda rank: rank.in_pytorch(True),
             "a side stream that is PyTorch's current one": Rank.in_pytorchs_side_stream}
    if jax is not None:
        cases["JAX's arrays, by DLPack"] = Rank.in_jax
    if cupy is not None:
        cases["CuPy's arrays"] = Rank.in_cupy
    if not EMULATED:
        cases["the stream that an interface names"] = Rank.named_stream

    def run(number: int) -> dict[str, int]:
        if not EMULATED:  # the ranks share a GPU, so each needs its own stream
            torch.cuda.set_stream(torch.cuda.Stream())
        with symm.Communicator(number, 2, f"gpu_arrays {os.getpid()}",
                               device=None if EMULATED else 0) as communicator:
            rank = Rank(communicator)
            return {name: case(rank) for name, case in cases.items()}

    with ThreadPoolExecutor(2) as threads:
        wrong = list(threads.map(run, range(2)))
    for name in cases:
        print(f"{name}: {sum(counts[name] for counts in wrong)} of {2 * TURNS} results are wrong")
    return int(any(counts != dict.fromkeys(cases, 0) for counts in wrong))


if __name__ == "__main__":
    sys.exit(main())
