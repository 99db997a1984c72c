#pragma once
/// \file
/// Where ranks meet: allgather, barrier, and file descriptors for everybody.
///
/// A program of several ranks needs one thing before any GPU can help: every rank has to learn what
/// the others have (sizes, addresses, handles). NCCL calls this the bootstrap and does it over TCP
/// (src/bootstrap.cc); handles of memory are file descriptors here, and descriptors travel over
/// UNIX sockets only, so one kind of socket does both.
///
/// Rank 0 is the hub: every other rank has one connection, to it. All messages are packets
/// (SOCK_SEQPACKET), so that a message arrives whole, with its descriptors, or not at all.
///
/// | step    | rank r > 0 sends       | rank 0 waits for    | rank 0 sends         | r waits for |
/// |---------|------------------------|---------------------|----------------------|-------------|
/// | join    | HELLO rank, size, run  | HELLO of every rank | WELCOME, process ids | WELCOME     |
/// | call k  | CALL k name bytes fds  | CALL k of every one | RESULT k of 0, 1 ... | all RESULTs |
/// | failure | FAIL text              | (instead of a CALL) | FAIL text, to all    | (instead)   |
///
/// - It cannot deadlock: a rank sends its CALL before it waits, the hub reads all CALLs before it
///   sends a RESULT, and whoever is sent a RESULT is already reading.
/// - One call cannot overtake another: a connection keeps its order, the hub takes exactly one CALL
///   from each connection a call, and number and name travel along. Rank 1 in barrier `a` while
///   rank 2 is in allgather `b` is an error on every rank that says so.
/// - Nobody waits for ever: CALL carries the time its sender has left. The hub gives up when the
///   first of the waiting has none, names who is missing, and tells all (FAIL). The others allow it
///   kVerdictGrace longer than their own limit, and only then blame rank 0.
/// - After a failure the rendezvous is broken: each later call throws the same error at once.
///
/// Ranks may be processes or threads: the sockets do not care.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/sys/deadline.hpp"
#include "common/sys/descriptor.hpp"

namespace symm {

namespace detail {
struct Meeting;
}

/// The most ranks of one run.
inline constexpr int kMaxRanks = 64;
/// The most bytes and descriptors that one rank contributes to one call.
inline constexpr std::size_t kMaxContribution = 32 * 1024;
inline constexpr std::size_t kMaxDescriptors = 64;
/// How much longer than its own limit a rank waits for the hub to say who is missing.
inline constexpr std::chrono::seconds kVerdictGrace{2};

/// How long a rank may be gone before one that waits elsewhere takes it for lost: at the end of a run it
/// may leave while a peer's kernel is still at its last instructions.
inline constexpr std::chrono::seconds kLeave{3};

/// How much longer than the standard limit a rank whose step has ended waits for those whose step waits.
inline constexpr std::chrono::seconds kStepGrace{5};

/// Ranks that cannot go on together: one is missing, lost, failed, or in another call.
class BootstrapError : public std::runtime_error {
public:
    BootstrapError(const std::string& text, int culprit, bool told)
        : runtime_error(text), culprit_(culprit), told_(told) {}
    /// The rank at fault; -1 where none is known.
    int culprit() const { return culprit_; }
    /// True where another rank failed and said so, or is gone: then look there for the cause.
    bool told() const { return told_; }

private:
    int culprit_;
    bool told_;
};

/// What a rank must know to meet the others.
struct RankInfo {
    int rank = 0;
    int size = 1;
    std::filesystem::path directory;  ///< Private to the user (0700); rank 0 listens in it.
    /// The same for all ranks of a run, so that runs cannot mix; 0 where nobody gave it a number.
    std::uint64_t run = 0;
};

/// One rank's side of the meeting. Calls are collective: every rank makes the same calls in the
/// same order, with the same names. Used by one thread at a time.
class Bootstrap {
public:
    /// Meets the others; returns when all have come. Throws BootstrapError naming who is missing.
    static Bootstrap join(const RankInfo& info, Deadline deadline = Deadline::standard());

    /// Tells the ranks that have not met yet why they need not wait: one that fails before it has a
    /// connection can reach the others through the directory only. Needs a `run` that is not 0.
    static void call_off(const RankInfo& info, std::string_view text) noexcept;

    Bootstrap(Bootstrap&&) noexcept;
    Bootstrap& operator=(Bootstrap&&) noexcept;
    ~Bootstrap();

    int rank() const;
    int size() const;
    /// The process a rank lives in.
    int process_of(int rank) const;

    /// Everybody's bytes, by rank. At most kMaxContribution bytes each, lengths may differ.
    std::vector<std::vector<std::byte>> gather_bytes(std::string_view name,
                                                     std::span<const std::byte> mine,
                                                     Deadline deadline = Deadline::standard());

    /// Everybody's value, by rank.
    template <class T>
    std::vector<T> allgather(std::string_view name, const T& mine,
                             Deadline deadline = Deadline::standard()) {
        static_assert(std::is_trivially_copyable_v<T>, "values travel as bytes");
        static_assert(sizeof(T) <= kMaxContribution);
        std::vector<T> values(static_cast<std::size_t>(size()));
        const auto all = gather_bytes(name, std::as_bytes(std::span(&mine, 1)), deadline);
        for (std::size_t i = 0; i < all.size(); ++i) {
            require_size(static_cast<int>(i), name, all[i].size(), sizeof(T));
            std::memcpy(static_cast<void*>(&values[i]), all[i].data(), sizeof(T));
        }
        return values;
    }

    /// Everybody's text, by rank.
    std::vector<std::string> allgather_text(std::string_view name, std::string_view mine,
                                            Deadline deadline = Deadline::standard());

    /// Returns when every rank has called it.
    void barrier(std::string_view name, Deadline deadline = Deadline::standard());

    /// Gives `mine` (at most kMaxDescriptors, none is fine) to every rank, and returns everybody's
    /// by rank: new descriptors of the same open files, this rank's own included. `mine` stays the
    /// caller's.
    std::vector<std::vector<UniqueFd>> exchange(std::string_view name,
                                                std::span<const UniqueFd> mine,
                                                Deadline deadline = Deadline::standard());

    /// A step that each rank takes on its own and all must have taken: runs `step`, then tells all
    /// how it went. Where it threw on any rank, every rank throws: its own exception where it
    /// failed, else BootstrapError with the text of the first that did. The rendezvous stays
    /// usable.
    template <class Step>
    void together(std::string_view name, Step&& step, Deadline deadline) {
        agree(name, failure_of(step), deadline);
    }
    /// The same without a deadline for the step itself, which may be long, or a wait in a kernel with a
    /// limit of its own: a rank's patience with the others starts when its own step has ended, and is
    /// longer than such a wait, whose message says more.
    template <class Step>
    void together(std::string_view name, Step&& step) {
        const std::exception_ptr failure = failure_of(step);
        agree(name, failure, Deadline::after(Deadline::standard_limit() + kStepGrace));
    }

    /// For waits that are elsewhere (in a kernel, for one that a peer has to write to): throws, as a
    /// call would, where a rank has failed or has been gone for kLeave. Does not wait, and takes
    /// nothing that the next call needs. `doing` says what this rank waits for.
    void look(std::string_view doing);

    /// Tells every rank that this one cannot go on; their next or present call throws with the
    /// text.
    void fail(std::string_view text) noexcept;

    /// Who was turned away while the ranks met, and why: strangers, other versions, other runs.
    const std::vector<std::string>& refusals() const;

private:
    explicit Bootstrap(std::unique_ptr<detail::Meeting> meeting);
    /// What the step threw, or nothing.
    template <class Step>
    static std::exception_ptr failure_of(Step&& step) {
        try {
            step();
            return nullptr;
        } catch (const BootstrapError&) {
            throw;  // the others are beyond reach
        } catch (...) {
            return std::current_exception();
        }
    }
    void agree(std::string_view name, const std::exception_ptr& failure, Deadline deadline);
    void require_size(int rank, std::string_view name, std::size_t bytes, std::size_t expected);
    std::unique_ptr<detail::Meeting> meeting_;
};

}  // namespace symm
