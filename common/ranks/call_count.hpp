#pragma once
/// \file
/// Keeps ranks that refuse calls in step with those that make them.
///
/// Collective calls meet by their order alone: a rank's k-th call is answered by the k-th calls of
/// the others. If a rank refuses a call that others have queued, its next call would be answered by
/// that one. So the next call waits on the host until all ranks have refused theirs too. Otherwise
/// the others wait in kernels for this rank, and its call throws.

#include <cstdint>

#include "common/bootstrap/bootstrap.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {

/// One rank's calls, refused ones included.
class CallCount {
public:
    /// Begins a call, and returns its number, from 1 on. Waits for all ranks if the last call was
    /// refused. Throws BootstrapError if a rank does not come, and std::invalid_argument if the
    /// ranks have not refused the same calls.
    std::uint64_t begin(Bootstrap& bootstrap) {
        if (was_refused_) {
            const auto all = bootstrap.allgather("the call after a refused one", calls_);
            for (std::size_t rank = 0; rank < all.size(); ++rank) {
                refuse_unless(all[rank] == calls_,
                              "rank {} has refused its call {}, and rank {} its call {}: all ranks "
                              "must make the same calls",
                              bootstrap.rank(), calls_, rank, all[rank]);
            }
            was_refused_ = false;
        }
        return ++calls_;
    }
    /// This rank makes nothing of the call that it has begun, and the others do not know that.
    void refuse() { was_refused_ = true; }

    bool was_refused() const { return was_refused_; }
    /// Calls begun so far.
    std::uint64_t count() const { return calls_; }

private:
    std::uint64_t calls_ = 0;
    bool was_refused_ = false;
};

}  // namespace symm
