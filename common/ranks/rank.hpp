#pragma once
/// \file
/// A rank: its number, its GPU, its bootstrap, and what it prints.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/bootstrap/bootstrap.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/creator_process.hpp"
#include "common/sys/format.hpp"
#include "common/sys/named.hpp"

namespace symm {

/// The kind of a rank: a process of its own, or a thread of one process.
enum class RankMode { kProcess, kThread };
constexpr auto names_of(RankMode) {
    return names("RankMode", "process", "thread");
}

/// The kind of a run's ranks. Collective. Throws std::invalid_argument if they are neither threads
/// of one process nor each a process of its own.
RankMode common_mode(Bootstrap& bootstrap);

/// One rank of a run, given to the body by run_ranks(). Used by its own thread only.
class Rank {
public:
    /// Takes the device with this ordinal. The default is `rank % device_count()`, so that more
    /// ranks than GPUs share them. Collective. Throws BootstrapError if one rank's driver is
    /// emulated and another's is not.
    Rank(std::unique_ptr<Bootstrap> bootstrap, RankMode mode, std::optional<int> device = {});

    int rank() const { return bootstrap_->rank(); }
    int size() const { return bootstrap_->size(); }
    RankMode mode() const { return mode_; }
    bool is_thread() const { return mode_ == RankMode::kThread; }
    /// The ordinal of this rank's GPU. Its primary context is current on the rank's thread.
    int device() const { return gpu_.ordinal(); }
    const Device& gpu() const { return gpu_; }
    /// The number of the process that a rank runs in.
    int process_of(int peer) const { return places_.at(static_cast<std::size_t>(peer)).process; }
    /// The ordinal that a rank's GPU has in this process; nothing if this process does not see
    /// it. Found by UUID: ordinals may differ between processes (CUDA_VISIBLE_DEVICES).
    [[nodiscard]] std::optional<int> device_of(int peer) const;
    /// How many ranks of one process share a device, at most: their kernels have to be resident
    /// together.
    int most_on_a_device() const;
    Bootstrap& bootstrap() { return *bootstrap_; }

    /// Called by the destructors of objects that kernels of several ranks use, before they free
    /// anything. Freeing device memory waits for all kernels of the device. If ranks are threads
    /// that share a device, those kernels may be waiting for this rank. So if an exception
    /// causes the destruction and ranks are threads, this tells the other ranks, which then abort
    /// their kernels. That ends the run, even if the exception is caught later. Does nothing in a
    /// child of fork().
    void tell_if_unwinding() noexcept;

    /// Prints text. Each line begins with `[rank] ` and is not mixed with what other ranks print.
    template <class... Arguments>
    void say(Format<std::type_identity_t<Arguments>...> format,
             const Arguments&... arguments) const {
        print(text_of(format, arguments...), true);
    }
    /// Prints one line per rank, in rank order. Collective.
    void say_in_order(std::string_view line);
    /// Prints text on rank 0 only, without a prefix: for tables and what concerns all ranks.
    template <class... Arguments>
    void headline(Format<std::type_identity_t<Arguments>...> format,
                  const Arguments&... arguments) const {
        if (rank() == 0) {
            print(text_of(format, arguments...), false);
        }
    }

    /// Throws std::runtime_error if some output could not be written: the disk was full, or a pipe
    /// stayed full for SYMM_TIMEOUT. Called at the end of a run: if it threw before that, other
    /// ranks could be in kernels that wait for this rank. say() and headline() call it at once only
    /// if a pipe stayed full.
    void require_printed() const;

private:
    struct Place {
        int process;
        CUuuid device;
        int emulated;
    };
    void print(std::string_view text, bool prefixed) const;

    std::unique_ptr<Bootstrap> bootstrap_;
    RankMode mode_;
    Device gpu_;
    std::vector<Place> places_;  // by rank
    mutable int print_error_ = 0;
    CreatorProcess creator_;
};

}  // namespace symm
