#pragma once
/// \file
/// The program's ncclComms, by address.

#include <memory>

#include "symm/nccl/entry.hpp"

namespace symm::drop_in {

/// The entry of a communicator, which is made if there is none. Null if NCCL does not know it.
std::shared_ptr<Entry> entry_of(ncclComm* comm);
/// The entry, or null.
std::shared_ptr<Entry> known_entry(ncclComm* comm);
/// Takes out the entry, or null, of a communicator that NCCL is about to free: another one may get
/// its address.
std::shared_ptr<Entry> forget(ncclComm* comm);

}  // namespace symm::drop_in
