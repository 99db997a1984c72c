#pragma once
/// \file
/// Groups: what a thread has to do for its communicators at ncclGroupEnd.
///
/// Every rank goes through the same steps, those of end_group(), since whose a call is follows from
/// what all ranks share. If one of NCCL's calls has been refused, NCCL's group does nothing, and
/// neither do we.
///
/// A thread may have several communicators, one for each of its GPUs. Steps in which ranks wait for
/// each other on the host then run in a thread for each communicator. But those whose calls share a
/// stream stay in the program's order: in another one than on the other ranks, the calls would wait
/// for each other.

#include <memory>

#include "symm/nccl/entry.hpp"

namespace symm::drop_in {

/// Whether the calling thread is inside of a group.
bool in_group();
void begin_group();
/// Calls NCCL's ncclGroupEnd, and at the end of the outermost group does all work. Returns the
/// first failure, else what NCCL returned.
Result end_group();
/// After NCCL's ncclGroupSimulateEnd: nothing is done.
void drop_group();

/// Inside of a group: for its end.
Work& work_in_group(const std::shared_ptr<Entry>& entry);
/// Notes that a call of the group uses the stream. Refuses, as NCCL does, a stream that is not
/// captured by the same graph as the communicator's others.
Result use_in_group(const std::shared_ptr<Entry>& entry, CUstream stream);
/// Notes that a call of the group has been refused. Returns `result`.
Result note_in_group(Result result);
}  // namespace symm::drop_in
