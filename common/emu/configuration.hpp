#pragma once
/// \file
/// What the emulated machine looks like. Read from the environment, once, by cuInit.
///
/// | variable         | means                                                            | default |
/// |------------------|------------------------------------------------------------------|---------|
/// | SYMM_EMU_DEVICES | GPUs, 0 to 16; none: cuInit says CUDA_ERROR_NO_DEVICE            | 4       |
/// | SYMM_EMU_MEMORY  | memory of each GPU, in bytes or with a suffix K, M or G          | 1G      |
/// | SYMM_EMU_SMS     | multiprocessors of each, 1 to 1024; each holds 512 threads       | 2       |
/// | SYMM_EMU_P2P     | 0: no GPU may touch another's memory                             | 1       |
/// | SYMM_EMU_FABRIC  | 1: FABRIC handles are permitted                                  | 0       |
/// | SYMM_EMU_LOSSY   | `a:b[,c:d]`: what GPU a writes to GPU b is lost, though b claims peer access | |
/// | SYMM_EMU_FAIL    | `cuMemMap:2:CUDA_ERROR_OUT_OF_MEMORY[,...]`: the 2nd cuMemMap fails so; `SIGKILL`: dies in it | |

#include <cuda.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace symm::emu {

/// The most GPUs that can be emulated; SYMM_EMU_DEVICES says how many are.
inline constexpr int kMaxDevices = 16;

/// The call of a function that is to fail, counted from 1.
struct PlannedFailure {
    std::string function;
    long call = 1;
    CUresult result = CUDA_ERROR_UNKNOWN;
};

struct Configuration {
    int devices = 4;
    std::size_t memory = std::size_t{1} << 30;  ///< Bytes of each device.
    int multiprocessors = 2;                    ///< Of each device.
    bool peer_access = true;
    bool fabric = false;
    std::vector<std::pair<int, int>> lossy;  ///< Writer and owner of the memory that loses writes.
    std::vector<PlannedFailure> failures;
};

/// Reads the environment. Throws std::invalid_argument naming the variable, what it holds and what
/// it may hold.
Configuration read_configuration();

}  // namespace symm::emu
