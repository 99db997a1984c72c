#pragma once
/// \file
/// How ranks exchange sizes, addresses and handles before their GPUs can reach each other, and how
/// they learn that one of them has failed.
///
/// NCCL calls this the bootstrap (src/bootstrap.cc). Here it is an interface: a program that uses
/// MPI or PyTorch can implement it with those. The implementation of this repository uses UNIX
/// sockets (socket_bootstrap.hpp).

#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/sys/deadline.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/format.hpp"

namespace symm {

/// The most ranks of one run.
inline constexpr int kMaxRanks = 64;
/// The most bytes and descriptors that one rank contributes to one call. Every implementation takes
/// that many.
inline constexpr std::size_t kMaxContribution = 32 * 1024;
inline constexpr std::size_t kMaxDescriptors = 64;

/// Thrown if the ranks cannot go on: one is missing or lost, has failed, or makes a different call.
class BootstrapError : public std::runtime_error {
public:
    BootstrapError(int rank, bool remote, const std::string& text)
        : runtime_error(text), rank_(rank), remote_(remote) {}
    template <class... Arguments>
    requires(sizeof...(Arguments) > 0)
        BootstrapError(int rank, bool remote, Format<std::type_identity_t<Arguments>...> format,
                       const Arguments&... arguments)
        : BootstrapError(rank, remote, text_of(format, arguments...)) {}
    /// The rank at fault; -1 if none is known.
    int rank() const { return rank_; }
    /// The cause is on another rank, which failed and said so, or is gone (as ncclRemoteError).
    bool remote() const { return remote_; }

private:
    int rank_;
    bool remote_;
};

/// One rank's connection to the others. Calls are collective: every rank makes the same calls in
/// the same order, with the same names. All throw BootstrapError naming the rank at fault; after
/// that, unless a function says otherwise, the bootstrap is broken, and every later call throws the
/// same error. Used by one thread at a time, except for async_error() and abort().
class Bootstrap {
public:
    virtual ~Bootstrap() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    /// The bytes of every rank, by rank. At most kMaxContribution bytes each; lengths may differ.
    virtual std::vector<std::vector<std::byte>> allgather_bytes(
        std::string_view name, std::span<const std::byte> local,
        Deadline deadline = Deadline::standard()) = 0;

    /// Returns when every rank has called it.
    virtual void barrier(std::string_view name, Deadline deadline = Deadline::standard()) = 0;

    /// Gives `local` (0 to kMaxDescriptors) to every rank, and returns the descriptors of all ranks
    /// by rank: new ones of the same open files, for this rank's own too. The caller keeps `local`.
    /// Needed if ranks are processes, and handles are descriptors (lab 03).
    virtual std::vector<std::vector<UniqueFd>> exchange(
        std::string_view name, std::span<const UniqueFd> local,
        Deadline deadline = Deadline::standard()) = 0;

    /// The error if a rank has failed or is gone. For use while this rank waits outside of the
    /// bootstrap (for a kernel that polls what a peer writes). Does not wait, and receives nothing
    /// that the next call needs. `waiting_for` goes into the error's text. From any thread: while
    /// another thread is in a call, which finds such errors itself, it may return nothing.
    virtual std::optional<BootstrapError> async_error(std::string_view waiting_for) = 0;

    /// Tells every rank that this one cannot go on: the call that a rank is in, or its next one,
    /// throws with the text. Not while another thread is in a call.
    virtual void fail(std::string_view text) noexcept = 0;

    /// Ends the call that this rank is in, and those to come, as a failure of this rank that all
    /// ranks learn of. From any thread.
    virtual void abort() noexcept = 0;

    // Built on these:

    /// Throws what async_error() finds.
    void throw_async_error(std::string_view waiting_for);

    /// The values of all ranks, by rank. Throws BootstrapError if a rank's value has another
    /// size; the bootstrap stays usable.
    template <class T>
    std::vector<T> allgather(std::string_view name, const T& local,
                             Deadline deadline = Deadline::standard()) {
        static_assert(std::is_trivially_copyable_v<T>, "values travel as bytes");
        static_assert(!std::is_same_v<T, bool>, "gather an int: vector<bool> holds no bools");
        static_assert(sizeof(T) <= kMaxContribution);
        std::vector<T> values(static_cast<std::size_t>(size()));
        const auto all = allgather_bytes(name, std::as_bytes(std::span(&local, 1)), deadline);
        for (std::size_t i = 0; i < all.size(); ++i) {
            require_size(static_cast<int>(i), name, all[i].size(), sizeof(T));
            std::memcpy(static_cast<void*>(&values[i]), all[i].data(), sizeof(T));
        }
        return values;
    }

    /// The texts of all ranks, by rank.
    std::vector<std::string> allgather_text(std::string_view name, std::string_view local,
                                            Deadline deadline = Deadline::standard());

    /// Runs `step` on each rank, then tells all ranks whether it succeeded, and returns what it
    /// returned. If it threw on any rank, every rank throws. A rank whose own step threw rethrows
    /// that exception. The others throw BootstrapError with the text of the lowest rank whose step
    /// threw. The bootstrap stays usable. The step makes no collective calls.
    ///
    /// The step may itself wait up to SYMM_TIMEOUT, for example for a kernel. So a rank whose step
    /// has succeeded waits SYMM_TIMEOUT + kStepGrace for the others: a step that times out on
    /// another rank can then say what it waited for. A rank whose step has failed waits only for
    /// what is left of its SYMM_TIMEOUT, + kStepGrace.
    template <class Step>
    auto together(std::string_view name, Step&& step) {
        if constexpr (!std::is_void_v<decltype(step())>) {
            std::optional<decltype(step())> made;
            together(name, [&] { made.emplace(step()); });
            return std::move(*made);
        } else {
            const Deadline wait = Deadline::standard();
            std::exception_ptr error;
            try {
                step();
            } catch (const BootstrapError&) {
                throw;  // the ranks can no longer be told
            } catch (...) {
                error = std::current_exception();
            }
            agree(name, error, Deadline::after((error ? wait.left() : wait.limit()) + kStepGrace));
        }
    }

protected:
    Bootstrap() = default;

private:
    /// How much longer than SYMM_TIMEOUT a rank waits for ranks whose step still waits.
    static constexpr std::chrono::seconds kStepGrace{3};

    void agree(std::string_view name, const std::exception_ptr& error, Deadline deadline);
    static void require_size(int rank, std::string_view name, std::size_t bytes,
                             std::size_t expected);
};

}  // namespace symm
