#include "labs/06_allreduce/communicator/own_collective.hpp"

#include <algorithm>
#include <cstddef>

#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {

OwnCollective::OwnCollective(Communicator& communicator, const OwnNeeds& needs)
    : communicator_(communicator), slots_(needs.slots_per_peer), most_{0, needs.threads} {
    refuse_unless(ranks() <= kMaxRanksOnGpus, "a collective of your own takes {} ranks, not {}",
                  kMaxRanksOnGpus, ranks());
    if (is_emulated()) {
        most_.threads = 32;
    }
    const auto resident = [&] {  // what it throws, all ranks are told
        refuse_unless(needs.resident != nullptr,
                      "OwnNeeds::resident is empty: it returns how many blocks of the collective's "
                      "kernels a device keeps resident (resident_blocks<Kernel>() of "
                      "occupancy.hpp)");
        refuse_unless(needs.threads != 0, "OwnNeeds::threads is 0");
        return needs.resident(most_.threads);
    };
    most_.blocks =
        std::min(communicator.agree_on_blocks(resident), is_emulated() ? 2U : kMaxBlocks);
    const std::size_t bytes = OwnMemory::bytes(ranks(), slots_);
    constexpr std::size_t kSlots = offsetof(OwnMemory, slots);
    const auto initialize = [&](CUdeviceptr memory) {
        zero(memory, kSlots);
        if (bytes != kSlots) {
            fill(memory + kSlots, needs.has_sentinel ? 0xff : 0, bytes - kSlots);
        }
    };
    memory_ = communicator.add_memory(bytes, initialize).pointer<OwnMemory>();
}

MailboxParams OwnCollective::call(const Call& call) const {
    return {{Reduction(ReduceOp::kSum, ranks()), communicator_.timeout(), rank(), ranks()},
            mailbox_of(memory_, rank(), slots_),
            call};
}

Rendezvous OwnCollective::meeting(CUdeviceptr in, CUdeviceptr out, std::size_t bytes) const {
    Rendezvous meeting{memory_.member(&OwnMemory::rendezvous), rank(), ranks(), {}};
    const auto from = communicator_.find_window(in, bytes);
    const auto to = communicator_.find_window(out, bytes);
    for (int p = 0; p < ranks(); ++p) {
        meeting.mine[p] = {from ? from->seen_by(p, rank()) : in, to ? to->seen_by(p, rank()) : out};
    }
    return meeting;
}

BarrierView OwnCollective::barrier() const {
    return {memory_.member(&OwnMemory::barrier), rank(), ranks()};
}

SymmetricPointer<TurnsMemory> OwnCollective::turns() const {
    return memory_.member(&OwnMemory::turns);
}

}  // namespace symm
