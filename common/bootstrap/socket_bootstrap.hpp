#pragma once
/// \file
/// The bootstrap over UNIX sockets: ranks are processes or threads of one machine.
///
/// Handles of memory are file descriptors (lab 03), and descriptors travel over UNIX sockets only,
/// so one kind of socket does all. Rank 0 is the root: every other rank has one connection, to it.
/// All messages are packets (SOCK_SEQPACKET): one arrives whole, with its descriptors, or not at
/// all.
///
/// | step    | rank r > 0 sends      | rank 0 waits for    | rank 0 sends         | r waits for |
/// |---------|-----------------------|---------------------|----------------------|-------------|
/// | join    | HELLO rank, size      | HELLO of every rank | WELCOME              | WELCOME     |
/// | call k  | CALL k name bytes fds | CALL k of every one | RESULT k of 0, 1 ... | all RESULTs |
/// | failure | FAIL text             | (instead of a CALL) | FAIL text, to all    | (instead)   |
///
/// - It cannot deadlock: a rank sends its CALL before it waits, the root reads all CALLs before it
///   sends a RESULT, and a rank that is sent a RESULT is already reading.
/// - One call cannot overtake another: a connection keeps its order, the root takes exactly one
///   CALL per connection and call, and number and name travel along. Rank 1 in barrier `a` while
///   rank 2 is in allgather `b` is an error on every rank that says so.
/// - Every wait ends: a CALL carries the moment until which its sender waits. The root gives up at
///   the first of these moments, names who is missing, and tells all (FAIL). The others wait
///   kVerdictGrace longer, and only then blame rank 0.
///
/// Joining is for ranks that a launcher has started (join()). Where one process starts all ranks,
/// it makes the connections itself (connected_sockets()).

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/bootstrap/bootstrap.hpp"
#include "common/bootstrap/message.hpp"

namespace symm {

/// The connections of one rank: rank 0 has one to each other rank, by rank, and an empty place for
/// itself; the others have one, to rank 0.
using Connections = std::vector<UniqueFd>;

/// The connections of `size` ranks, by rank. Throws std::system_error.
std::vector<Connections> connected_sockets(int size);

class SocketBootstrap final : public Bootstrap {
public:
    /// Takes connected sockets. Returns when all ranks have come here.
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
    std::optional<BootstrapError> async_error(std::string_view waiting_for) override;
    void fail(std::string_view text) noexcept override;

private:
    class Call;
    struct Contribution;

    std::vector<Contribution> call(MessageKind kind, std::string_view name,
                                   std::span<const std::byte> bytes,
                                   std::span<const UniqueFd> descriptors, Deadline deadline);
    /// `rank 2 (pid 123)`
    std::string name_of_rank(int rank) const;
    /// Tells all ranks what has broken this one.
    void tell_all() const noexcept;

    int rank_;
    int size_;
    Connections connections_;
    std::vector<int> processes_;  ///< By rank; empty until all have come.
    std::uint32_t number_ = 0;    ///< Of the next call.
    std::optional<BootstrapError> broken_;
    /// When async_error() first saw a rank gone.
    std::optional<Deadline> closed_;
};

/// Connects the ranks that come to a name in the abstract socket namespace, where rank 0 listens.
/// Another user can neither join nor pass for rank 0: both ends look who the other is. The name
/// must be one that no other run uses. Throws BootstrapError naming who is missing.
std::unique_ptr<SocketBootstrap> join(int rank, int size, std::string_view name,
                                      Deadline deadline = Deadline::standard());

/// How much longer than its own limit a rank waits for the root to say who is missing.
inline constexpr std::chrono::seconds kVerdictGrace{2};

/// `deadline` and the grace.
inline Deadline with_grace(Deadline deadline) {
    return Deadline::at(deadline.end() + kVerdictGrace, deadline.limit());
}

/// Sends a message to each socket that is one, without waiting for long: a peer that is gone or
/// does not read is left alone.
void send_to_all(std::span<const UniqueFd> sockets, const Message& message) noexcept;

}  // namespace symm
