"""Tests of symm.torch, with PyTorch's tensors in host memory, on emulated GPUs."""

import argparse
import gc
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "examples"))

import torch_checks  # first, since it turns off a cache
import decode
import symm
import symm.torch
import torch
import transformer
from processes import spawn
from ranks import alone, on_ranks, runs
from torch.library import opcheck

PACKAGE = Path(__file__).parents[1]
torch.set_num_threads(1)


def registered_alone() -> tuple[symm.Communicator, str]:
    communicator = alone()
    return communicator, symm.torch.register(communicator, f"alone {next(runs)}")


def on_groups(ranks: int, check):
    run = next(runs)
    on_ranks(ranks, lambda c: check(symm.torch.register(c, f"run {run}, rank {c.rank}"), "cpu"))


def compiled(rank: int, ranks: int, name: str):
    torch.set_num_threads(1)
    with symm.Communicator(rank, ranks, name) as communicator:
        torch_checks.compiled(symm.torch.register(communicator, "compiled"), "cpu", "aot_eager")


class Operators(unittest.TestCase):

    def test_results(self):
        for ranks in (2, 3):
            on_groups(ranks, torch_checks.operators)

    def test_gradients(self):
        for ranks in (2, 3):
            on_groups(ranks, torch_checks.gradients)

    def test_layers(self):
        for ranks in (2, 3):
            on_groups(ranks, torch_checks.layers)

    def test_compiled(self):
        name = f"test {os.getpid()} {next(runs)}"
        spawn(compiled, [(rank, 2, name) for rank in range(2)])

    def test_pytorchs_own_checks(self):
        communicator, group = registered_alone()
        with communicator:
            for x in (torch.rand(3, 5), torch.rand(4, requires_grad=True), torch.rand(5, 3).mT):
                for name in ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"):
                    opcheck(getattr(torch.ops.symm, name).default, (x, group))
            opcheck(torch.ops.symm.all_reduce_.default, (torch.rand(3, 5), group))
            opcheck(torch.ops.symm.all_reduce_rms_norm.default,
                    (torch.rand(3, 512), torch.rand(3, 512), torch.rand(512), group))
            opcheck(torch.ops.symm.all_reduce_rms_norm.default,
                    (torch.rand(3, 512).half(), None, torch.rand(512), group),
                    {"weight_offset": 1.0, "bias": torch.rand(512), "out_scale": torch.ones(1)})


class Refusals(unittest.TestCase):

    def test_what_has_no_gradient(self):
        communicator, group = registered_alone()
        with communicator:
            x = torch.rand(3, 512, requires_grad=True)
            with self.assertRaisesRegex(ValueError, "op max has no gradient"):
                symm.torch.all_reduce(x, group, "max")
            with self.assertRaisesRegex(RuntimeError, "all_reduce_.. has no gradient"):
                symm.torch.all_reduce_(x * 1, group)
            with self.assertRaisesRegex(RuntimeError, "all_reduce_rms_norm.. has no gradient"):
                symm.torch.all_reduce_rms_norm(x.detach(), torch.rand(3, 512), x[0], group)
            with torch.no_grad():
                symm.torch.all_reduce(x, group, "max")

    def test_wrong_arguments(self):
        def body(c):
            group = symm.torch.register(c, f"refused {c.rank}")
            for call, reason in (
                    (lambda: symm.torch.reduce_scatter(torch.rand(5, 3), group), "does not fit"),
                    (lambda: symm.torch.all_gather(torch.tensor(1.0), group), "does not fit"),
                    (lambda: symm.torch.all_reduce(torch.rand(5), group, "mean"), "operation"),
                    (lambda: symm.torch.broadcast(torch.rand(5), group, 2), "root is 2"),
                    (lambda: symm.torch.all_reduce_(torch.rand(5, 3).mT, group), "contiguous"),
                    (lambda: symm.torch.ColumnLinear(torch.nn.Linear(4, 5), group),
                     "cannot be cut"),
                    (lambda: symm.torch.RowLinear(torch.nn.Linear(4, 5), group, partial=True),
                     "added once per rank"),
                    (lambda: symm.torch.AllReduceRMSNorm(64, group), "512 to 16384"),
                    (lambda: symm.torch.all_reduce(torch.rand(5), c), "pass the name")):
                with self.assertRaisesRegex((ValueError, TypeError), reason):
                    call()
            self.assertEqual(symm.torch.all_reduce(torch.ones(3), group).tolist(), [2] * 3)
        on_ranks(2, body)

    def test_names(self):
        x = torch.ones(3)
        with self.assertRaisesRegex(ValueError, "no communicator is registered as 'none'"):
            symm.torch.all_reduce(x, "none")
        communicator, group = registered_alone()
        self.assertEqual(symm.torch.register(communicator, group), group)
        with alone() as other:
            with self.assertRaisesRegex(ValueError, "another communicator is registered"):
                symm.torch.register(other, group)
            communicator.destroy()
            with self.assertRaisesRegex(ValueError, "the communicator was destroyed"):
                symm.torch.all_reduce(x, group)
            symm.torch.register(other, group)
            self.assertEqual(symm.torch.all_reduce(x, group).tolist(), [1] * 3)
        communicator, group = registered_alone()
        del communicator
        gc.collect()
        with self.assertRaisesRegex(ValueError, "is gone: keep a reference"):
            symm.torch.all_reduce(x, group)
        for wrong in ((None, "x"), (other, 3)):
            with self.assertRaises(TypeError):
                symm.torch.register(*wrong)


class Programs(unittest.TestCase):

    def output_of(self, *program) -> str:
        found = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
             *program], capture_output=True, text=True, timeout=500)
        self.assertEqual(found.returncode, 0, found.stderr)
        return found.stdout

    def test_the_pages_program(self):
        page = (PACKAGE / "README.md").read_text()
        Path("mlp.py").write_text(page[page.index("# mlp.py"):].partition("```")[0])
        lines = self.output_of("mlp.py").splitlines()
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r"^0\.\d{5}, 1024 of 2048 rows$")
            self.assertEqual(line, lines[0])

    def test_the_example(self):
        rows = json.loads(self.output_of(
            PACKAGE / "examples" / "decode.py", "--layers=2", "--hidden=512", "--tokens=8",
            "--sequences=3", "--json"))["rows"]
        self.assertEqual([row["sum"] for row in rows], ["gloo", "symm", "symm, fused"])
        self.assertTrue(all(row["tokens_equal"] for row in rows))
        self.assertTrue(all(row["microseconds_per_token"] > 0 for row in rows))

    def test_the_examples_tokens_depend_on_the_sums(self):
        how = argparse.Namespace(sequences=3, tokens=8, compile=False)
        whole = transformer.Transformer(2, 512)
        with torch.no_grad():
            expected = decode.Decoder(whole, how, "cpu").run()
        self.assertGreater(expected.unique().numel(), 12)

        @torch.no_grad()
        def check(group: str, device: str):
            for add_norm, equal in (
                    (lambda: transformer.AddNorm(512), False),
                    (lambda: symm.torch.AllReduceRMSNorm(512, group), True)):
                part = transformer.share(whole, group, add_norm)
                found = decode.Decoder(part, how, device).run()
                self.assertEqual(torch.equal(found, expected), equal)
        on_groups(2, check)

    def test_symm_alone_does_not_import_pytorch(self):
        program = "import sys, symm; sys.exit('torch' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", program]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
