#pragma once
/// \file
/// The shape of the emulated machine: the variables SYMM_EMU_*
/// (common/sys/environment.hpp), read once, by cuInit.

#include <cstddef>
#include <vector>

#include "common/emu/faults.hpp"

namespace symm::emu {

/// The most GPUs that can be emulated; SYMM_EMU_DEVICES sets how many are.
inline constexpr int kMaxDevices = 16;

/// Which accesses of one GPU to another's memory are lost without an error. The default is that of
/// SYMM_EMU_LOSSY: stores and copies.
struct LossyPair {
    int from = 0;   ///< The GPU that accesses.
    int owner = 0;  ///< The GPU whose memory it is.
    bool loads = false;
    bool stores = true;
    bool copies = true;
};

struct Configuration {
    int devices = 0;
    std::size_t memory = 0;   ///< Bytes of each device.
    int multiprocessors = 0;  ///< A device has this many.
    bool peer_access = true;
    bool peer_atomics = true;  ///< Over NVLink, not over PCIe.
    bool fabric = false;
    bool multicast = true;  ///< Devices have multicast objects.
    bool torn_packs = false;
    std::vector<LossyPair> lossy;
    std::vector<PlannedFailure> failures;
};

/// Reads the environment. Throws UsageError for a variable that is not understood.
Configuration read_configuration();

}  // namespace symm::emu
