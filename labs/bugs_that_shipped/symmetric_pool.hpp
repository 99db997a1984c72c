#pragma once
/// \file
/// A pool of memory whose segments are registered with a communicator, of two ranks.
///
/// | call             | kind       | waits for the peer                                    |
/// |------------------|------------|-------------------------------------------------------|
/// | allocate         | local      | never: it adds a segment where this rank needs one    |
/// | register_all     | collective | until it registers, too                               |
/// | Group::*         | collective | until it makes the same call                          |
///
/// Collective calls: all ranks make the same ones in the same order.
///
/// Model of PyTorch's pools for symmetric memory (README.md, "B.6").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

/// How often a rank has made each collective call. Only that rank writes its own.
struct Calls {
    std::uint32_t registered;
    std::uint32_t reduced;
    std::uint32_t voted;
    std::uint32_t vote;
};

/// Collective calls of two ranks, as far as they wait for each other.
class Group {
public:
    Group(SymmetricPointer<Calls> calls, const simt::Timeout& timeout, int rank)
        : calls_(calls), waiter_(timeout), rank_(rank) {}

    void register_windows() { meet(&Calls::registered); }
    void all_reduce() { meet(&Calls::reduced); }
    /// Whether one rank says yes.
    bool any(bool yes) {
        calls_.of(rank_)->vote = yes ? 1 : 0;
        meet(&Calls::voted);
        const bool found = yes || calls_.of(1 - rank_)->vote != 0;
        meet(&Calls::voted);  // the vote has been read
        return found;
    }

private:
    void meet(std::uint32_t Calls::*call) {
        const std::uint32_t number = calls_.of(rank_)->*call + 1;
        signal(&(calls_.of(rank_)->*call), number);
        wait_signal(waiter_, &(calls_.of(1 - rank_)->*call),
                    {simt::Wait::kSignal, rank_, 1 - rank_, number});
    }

    SymmetricPointer<Calls> calls_;
    simt::Waiter waiter_;
    int rank_;
};

/// Memory of one rank. Its unit is one tensor.
class SymmetricPool {
public:
    static constexpr int kPerSegment = 2;  ///< Tensors.

    explicit SymmetricPool(Group& group) : group_(group) {}

    /// Local: each rank allocates what it needs, also tensors that only this rank has.
    void allocate() {
        if (tensors_ == kPerSegment * segments_) {
            ++segments_;
        }
        ++tensors_;
    }

    /// Collective: registers the segments that there are. What is allocated later stays
    /// unregistered, on every rank.
    void register_all() {
        group_.register_windows();
        registered_ = segments_;
    }

    /// Collective: adds up tensors of all ranks.
    void all_reduce() { group_.all_reduce(); }

    int registered() const { return registered_; }

private:
    Group& group_;
    int tensors_ = 0;
    int segments_ = 0;
    int registered_ = 0;  ///< Segments.
};

}  // namespace symm::bugs_that_shipped
