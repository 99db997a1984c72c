#pragma once
/// \file
/// Plain allocations: adding and removing them, with the emulator's mutex held.

#include <cuda.h>

#include "common/emu/memory.hpp"

namespace symm::emu {

struct Emulator;

/// Maps the memory's file and remembers it at the address found.
CUresult keep_plain(Emulator& e, PlainMemory memory, CUdeviceptr* pointer);

/// Unmaps and forgets what is at `pointer`, which must be there.
void drop_plain(Emulator& e, CUdeviceptr pointer);

}  // namespace symm::emu
