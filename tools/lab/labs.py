"""The six labs."""

from tool import Failure

LABS = {
    "01_vmm_alloc":
        "physical memory, address ranges, mappings: eight calls that make a buffer",
    "02_access":
        "who may access memory: peers, the host, read-only; the matrix of peers",
    "03_ipc":
        "memory across processes: handles, bootstrap of the ranks, the symmetric range",
    "04_shm_transport":
        "host memory between GPUs: a FIFO for GPUs without peer access",
    "05_device_prims":
        "signal, wait, packet, barrier: how kernels talk to each other",
    "06_allreduce":
        "the AllReduce: checked, and compared with NCCL"}


def show(_):
    for lab, topic in LABS.items():
        print(f"{lab:16}  {topic}")


def lab_named(word: str) -> str:
    """6, 06 or 06_allreduce becomes 06_allreduce."""
    for lab in LABS:
        if word in (lab, lab[:2], lab[1:2]):
            return lab
    raise Failure(f"there is no lab '{word}': choose one of "
                  f"{' '.join(lab[:2] for lab in LABS)}", 2)
