#pragma once
/// \file
/// SYMM_NCCL_STATS=1: what was ours and what was passed on to NCCL, printed at the process's exit.

#include <cstddef>
#include <string_view>

namespace symm::drop_in {

/// Counts a call of ours that reduced so many bytes.
void count_ours(std::size_t bytes);
/// Counts a call that was passed on. The reason must live until the exit.
void count_passed(const char* why);
/// Notes what became of a communicator of so many ranks: an empty reason if its calls are ours.
void note_communicator(int ranks, std::string_view why_passed);

}  // namespace symm::drop_in
