#pragma once
/// \file
/// Physical memory: finding it by its handle, importing it, letting it go. All with the emulator's
/// mutex held.

#include <cuda.h>

#include "common/emu/memory.hpp"

namespace symm::emu {

struct Emulator;

/// What the handle names, or null where it names nothing (any more).
Physical* find_physical(Emulator& e, CUmemGenericAllocationHandle handle);

/// Frees physical memory that no handle names and no mapping shows.
void drop_if_unused(Emulator& e, Physical& physical);

/// Gives a handle to what a descriptor from this or another process names. The same memory has the
/// same handle, once more referenced. Answers CUDA_ERROR_INVALID_VALUE for any other file, or where
/// the memory was not made to be shared so.
CUresult import_physical(Emulator& e, UniqueFd fd, CUmemAllocationHandleType type,
                         CUmemGenericAllocationHandle* handle);

}  // namespace symm::emu
