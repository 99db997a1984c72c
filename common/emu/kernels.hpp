#pragma once
/// \file
/// How large a kernel may be on an emulated GPU.
///
/// Each CUDA thread is a thread of the operating system, and all blocks of a launch run at once: a
/// launch that does not fit is refused, where a GPU would run its blocks in waves.

#include <cstddef>

namespace symm::emu {

inline constexpr int kMaxBlock = 1024;
inline constexpr int kThreadsOfMultiprocessor = 512;
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;

/// Threads that can be resident on a device at once.
int threads_of_device();

}  // namespace symm::emu
