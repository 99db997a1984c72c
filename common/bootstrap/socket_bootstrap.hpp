#pragma once
/// \file
/// The bootstrap over UNIX sockets: ranks are processes or threads of one machine.
///
/// Handles of memory are file descriptors (lab 03), and only UNIX sockets carry descriptors, so
/// UNIX sockets carry everything here. Rank 0 is the root: every other rank has one connection, to
/// rank 0. All messages are packets (SOCK_SEQPACKET): a packet arrives whole, with its descriptors,
/// or not at all.
///
/// | step    | rank r > 0 sends      | rank 0 waits for    | rank 0 sends         | r waits for |
/// |---------|-----------------------|---------------------|----------------------|-------------|
/// | join    | HELLO rank, size      | HELLO of every rank | WELCOME              | WELCOME     |
/// | call k  | CALL k name bytes fds | CALL k of every one | RESULT k of 0, 1 ... | all RESULTs |
/// | failure | FAIL text             | (instead of a CALL) | FAIL text, to all    | (instead)   |
///
/// CALL is BARRIER, ALLGATHER or EXCHANGE. A barrier has one RESULT, the others have one for each
/// rank. A connection that cannot be a rank of this run gets REFUSED text instead of WELCOME.
///
/// BOOTSTRAP.md of lab 03 says why ranks cannot deadlock, why calls cannot overtake each other, and
/// how every wait ends.
///
/// Joining is for ranks that a launcher has started (join()). If one process starts all ranks,
/// it makes the connections itself (connected_sockets()).

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/bootstrap/bootstrap.hpp"
#include "common/bootstrap/message.hpp"
#include "common/sys/closed_on_fork.hpp"
#include "common/sys/creator_process.hpp"
#include "common/sys/socket.hpp"

namespace symm {

/// The connections of one rank: rank 0 has one to each other rank, by rank, and an empty place for
/// itself; the others have one, to rank 0.
using Connections = std::vector<UniqueFd>;

/// The connections of `size` ranks, by rank. Throws std::system_error.
std::vector<Connections> connected_sockets(int size);

/// In a child of fork() every call throws, and fail() and abort() do nothing.
class SocketBootstrap final : public Bootstrap {
public:
    /// Takes connected sockets. Collective: returns when all ranks have called it.
    SocketBootstrap(int rank, int size, Connections connections,
                    Deadline deadline = Deadline::standard());

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    std::vector<std::vector<std::byte>> allgather_bytes(
        std::string_view name, std::span<const std::byte> local,
        Deadline deadline = Deadline::standard()) override;
    void barrier(std::string_view name, Deadline deadline = Deadline::standard()) override;
    std::vector<std::vector<UniqueFd>> exchange(std::string_view name,
                                                std::span<const UniqueFd> local,
                                                Deadline deadline = Deadline::standard()) override;
    [[nodiscard]] std::optional<BootstrapError> async_error(std::string_view waiting_for) override;
    void fail(std::string_view text) noexcept override;
    void abort() noexcept override;

private:
    class Call;

    std::vector<SocketPacket> call(MessageKind kind, std::string_view name,
                                   std::span<const std::byte> bytes,
                                   std::span<const UniqueFd> descriptors, Deadline deadline);
    /// `rank 2 (pid 123)`
    std::string name_of_rank(int rank) const;
    /// The error of every call in a child of fork(); nothing in the process of this rank.
    [[nodiscard]] std::optional<BootstrapError> forked() const;
    /// This rank's own failure.
    BootstrapError failure(std::string_view text) const;
    /// Sends all ranks the error that has broken this bootstrap.
    void tell_all(const BootstrapError& error) const noexcept;

    CreatorProcess creator_;
    std::mutex mutex_;  ///< Held during a call: async_error() may come from another thread.
    int rank_;
    int size_;
    Connections connections_;
    ClosedOnFork closed_on_fork_{connections_};
    std::vector<int> processes_;  ///< By rank; empty until all have joined.
    std::uint32_t number_ = 0;    ///< The next call's.
    std::optional<BootstrapError> broken_;
    std::atomic<bool> aborted_ = false;
    /// async_error() reports a closed connection only from this time on: until then the peer may
    /// simply have finished its run before us. Empty until async_error() first sees a closed
    /// connection.
    std::optional<Deadline> closed_;
};

/// Joins a run: rank 0 listens at a name in the abstract socket namespace, and the other ranks
/// connect to it. All have to be in one network namespace, to which the name belongs. No other run
/// may use the name. Another user can neither join nor pass for rank 0: both ends check the user of
/// the other. Throws BootstrapError naming the missing ranks.
[[nodiscard]] std::unique_ptr<SocketBootstrap> join(int rank, int size, std::string_view name,
                                                    Deadline deadline = Deadline::standard());

/// How much longer than its own deadline a rank waits for the root to name the missing ranks.
inline constexpr std::chrono::seconds kVerdictGrace{2};

/// The deadline, kVerdictGrace later.
inline Deadline with_grace(Deadline deadline) {
    return Deadline::at(deadline.end() + kVerdictGrace, deadline.limit());
}

/// Sends a message to each socket that is not empty. Waits at most 1 s for all of them together: a
/// peer that is gone or does not read is skipped.
void send_to_all(std::span<const UniqueFd> sockets, const Message& message) noexcept;

}  // namespace symm
