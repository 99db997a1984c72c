#pragma once
/// \file
/// A rank: its number, its GPU, its bootstrap, and what it prints.

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bootstrap/bootstrap.hpp"
#include "common/cuda/device.hpp"

namespace symm {

/// What a rank is: a process of its own, or a thread of one process.
enum class RankMode { kProcess, kThread };

/// `process` or `thread`.
std::string_view name_of(RankMode mode);
/// The mode by its name. Throws UsageError for another.
RankMode rank_mode(std::string_view name);

/// Writes text to a descriptor, each line behind `prefix` and in one piece. False, with errno set,
/// where it could not: ETIMEDOUT where nobody reads what a pipe holds, for SYMM_TIMEOUT.
bool print_lines(int descriptor, std::string_view prefix, std::string_view text);

/// One rank of a run, given to the body by run_ranks(). Used by its own thread only.
class Rank {
public:
    /// Takes the device with this ordinal; without one, `rank % device_count()`, so that more ranks
    /// than GPUs share them. Collective.
    Rank(std::unique_ptr<Bootstrap> bootstrap, RankMode mode, std::optional<int> device = {});

    int rank() const { return bootstrap_->rank(); }
    int size() const { return bootstrap_->size(); }
    RankMode mode() const { return mode_; }
    bool is_thread() const { return mode_ == RankMode::kThread; }
    /// The ordinal of this rank's GPU. Its primary context is current on the rank's thread.
    int device() const { return gpu_.ordinal(); }
    const Device& gpu() const { return gpu_; }
    /// The process that a rank lives in.
    int process_of(int peer) const { return places_.at(static_cast<std::size_t>(peer)).process; }
    /// The ordinal that a rank's GPU has in this process; nothing where this process does not see
    /// it. Ordinals of two processes do not compare (CUDA_VISIBLE_DEVICES), UUIDs do.
    std::optional<int> device_of(int peer) const;
    /// The most ranks of one process that share a device: their kernels have to be resident
    /// together.
    int most_on_a_device() const;
    Bootstrap& bootstrap() { return *bootstrap_; }

    /// Called by the destructors of objects that kernels of several ranks use, before they free
    /// anything. Freeing device memory waits for all kernels of the device. Where ranks are threads
    /// that share a device, those kernels may be waiting for this rank. So where an exception
    /// causes the destruction, this tells the other ranks, which then abort their kernels. It ends
    /// the run, even if the exception is caught later.
    void tell_if_unwinding() noexcept;

    /// Prints text, each line behind `[rank] ` and in one piece, whatever the other ranks print.
    template <class... Arguments>
    void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
        print(fmt::format(text, std::forward<Arguments>(arguments)...), true);
    }
    /// Prints text on rank 0 only, as it is: for tables and what concerns all.
    template <class... Arguments>
    void headline(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
        if (rank() == 0) {
            print(fmt::format(text, std::forward<Arguments>(arguments)...), false);
        }
    }

    /// Throws std::system_error where some output could not be written (a full disk). Called at the
    /// end of a run: before, other ranks may be in kernels that wait for this rank.
    void require_printed() const;

private:
    struct Place {
        int process;
        CUuuid device;
    };
    void print(std::string_view text, bool prefixed) const;

    std::unique_ptr<Bootstrap> bootstrap_;
    RankMode mode_;
    Device gpu_;
    std::vector<Place> places_;  // by rank
    mutable int print_error_ = 0;
};

}  // namespace symm
