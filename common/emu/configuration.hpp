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
/// | SYMM_EMU_TORN_PACKS | 1: 16-byte accesses come in two halves, in either order | 0      |
/// | SYMM_EMU_LOSSY   | `a:b[:loads+stores+copies][,...]`: what of GPU a's access to b is lost | |
/// | SYMM_EMU_FAIL    | `cuMemMap:2:CUDA_ERROR_OUT_OF_MEMORY[,...]`: the 2nd cuMemMap fails so; `SIGKILL`: dies in it | |

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace symm::emu {

/// The most GPUs that can be emulated; SYMM_EMU_DEVICES says how many are.
inline constexpr int kMaxDevices = 16;

/// The call of a function that is to fail, counted from 1.
struct PlannedFailure {
    std::string function;
    long call = 1;
    std::optional<CUresult> result;  ///< None: the process dies by SIGKILL in that call.
};

/// Accesses of one GPU to another's memory that end well and carry nothing: its stores and copies,
/// where SYMM_EMU_LOSSY does not say which.
struct LossyPair {
    int from = 0;   ///< Who accesses.
    int owner = 0;  ///< Whose memory it is.
    bool loads = false;
    bool stores = true;
    bool copies = true;
};

struct Configuration {
    int devices = 4;
    std::size_t memory = std::size_t{1} << 30;  ///< Bytes of each device.
    int multiprocessors = 2;                    ///< Of each device.
    bool peer_access = true;
    bool fabric = false;
    bool torn_packs = false;
    std::vector<LossyPair> lossy;
    std::vector<PlannedFailure> failures;
};

/// Reads the environment. Throws std::invalid_argument naming the variable, what it holds and what
/// it may hold.
Configuration read_configuration();

}  // namespace symm::emu
