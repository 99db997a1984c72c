#pragma once
/// \file
/// Groups: what a thread has to do for its communicators after ncclGroupEnd.
///
/// NCCL's calls of a group are launched by NCCL's ncclGroupEnd, ours right after it. A thread may
/// have several communicators, one for each of its GPUs. Steps in which ranks wait for each other
/// on the host then run in a thread for each communicator.

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
/// A window that NCCL registers at the end of the group: its handle is stored only then.
void register_in_group(const std::shared_ptr<Entry>& entry, ncclWindow_vidmem** handle,
                       void* memory, std::size_t bytes);

/// Outside of a group, or at its end: waits until NCCL has done its part of a call that returned
/// kInProgress, since ours come after it in the stream.
Result settle(ncclComm* comm, Result result);

}  // namespace symm::drop_in
