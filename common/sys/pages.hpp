#pragma once
/// \file
/// Pages of memory: of 4 KiB on x86-64; of 4, 16 or 64 KiB on Arm, as the kernel was built.

#include <cstddef>

namespace symm {

/// The system's page size, or SYMM_EMU_PAGE if that is larger: a multiple of larger pages is one of
/// real pages, too.
std::size_t page_bytes();

/// `bytes`, rounded up to whole pages.
std::size_t whole_pages(std::size_t bytes);

}  // namespace symm
