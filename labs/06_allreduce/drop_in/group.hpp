#pragma once
/// \file
/// Groups: what a thread has to do for its communicators after ncclGroupEnd.
///
/// NCCL's calls of a group are launched by NCCL's ncclGroupEnd, ours right after it. A thread may
/// have several communicators, one for each of its GPUs. Steps in which ranks wait for each other
/// on the host then run in a thread for each communicator. But those whose calls share a stream
/// stay in the program's order: in another one than on the other ranks, the calls would wait for
/// each other.

#include <memory>

#include "labs/06_allreduce/drop_in/entry.hpp"

namespace symm::drop_in {

/// Whether the calling thread is inside of a group.
bool in_group();
void begin_group();
/// After NCCL's ncclGroupEnd: at the end of the outermost group does all work, if NCCL's part has
/// succeeded. Returns the first failure, else `nccls`.
Result end_group(Result nccls);
/// After NCCL's ncclGroupSimulateEnd: nothing is done.
void drop_group();

/// Inside of a group: for its end.
Work& work_in_group(const std::shared_ptr<Entry>& entry);
}  // namespace symm::drop_in
