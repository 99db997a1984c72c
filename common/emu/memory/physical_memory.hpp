#pragma once
/// \file
/// Physical memory and its files. All functions with an Emulator need its mutex.

#include <cuda.h>

#include <cstddef>

#include "common/emu/emulator.hpp"

namespace symm::emu {

FileIdentity identity_of(int fd);

/// A memfd of `size` bytes, all zero. Refuses if the system cannot make it.
[[nodiscard]] UniqueFd new_memory_file(const char* name, std::size_t size);

/// Refuses if the owner, a device or kHost, has less than `size` bytes left.
void check_room(const Emulator& e, int owner, std::size_t size);
/// Bytes of a device that this process has allocated.
std::size_t used_on(const Emulator& e, int device);

/// The memory that the handle names. Refuses if it names nothing or was released.
Physical& find_physical(const Emulator& e, CUmemGenericAllocationHandle handle);

/// Makes a multicast object without devices. Returns its handle.
CUmemGenericAllocationHandle keep_object(Emulator& e, const CUmulticastObjectProp& properties);

/// Frees physical memory that has no handle and no mapping any more.
void drop_if_unused(Emulator& e, const Physical& physical);

/// Gives a handle to the memory of a descriptor from this or another process. Memory that has a
/// handle here keeps it, with one more reference. Refuses any other file, and memory that was not
/// made to be shared in this way.
CUmemGenericAllocationHandle import_physical(Emulator& e, UniqueFd fd,
                                             CUmemAllocationHandleType type);

}  // namespace symm::emu
