#include "common/ranks/rank_failure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "common/bootstrap/bootstrap.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/socket.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

// The head of a failure's report; the text follows. The report of a normal end is a single byte.
struct Report {
    std::int64_t when;
    bool usage;
    bool remote;
};
constexpr std::size_t kMaxText = 32 * 1024;

}  // namespace

RankFailure failure_now(int rank, std::string text) {
    return {.rank = rank,
            .when = std::chrono::steady_clock::now().time_since_epoch().count(),
            .text = std::move(text)};
}

RankFailure failure_of(int rank, const std::exception_ptr& error) {
    RankFailure failure = failure_now(rank, "");
    try {
        std::rethrow_exception(error);
    } catch (const UsageError& usage) {
        failure.usage = true;
        failure.text = one_line(usage.what());
    } catch (const BootstrapError& apart) {
        failure.remote = apart.remote();
        failure.text = one_line(apart.what());  // it names the ranks itself
    } catch (const std::exception& own) {
        failure.text = fmt::format("rank {} failed: {}", rank, error_text(own));
    } catch (...) {
        failure.text = fmt::format("rank {} failed: unknown error", rank);
    }
    return failure;
}

void throw_cause(const std::vector<RankFailure>& failures) {
    const RankFailure& cause = *std::ranges::min_element(failures, {}, [](const RankFailure& one) {
        return std::tuple(!one.killed, one.remote, one.when);
    });
    if (cause.usage) {
        throw UsageError(cause.text);
    }
    throw std::runtime_error(cause.text);
}

void report(int socket, const std::optional<RankFailure>& failure) noexcept {
    try {
        std::vector<std::byte> packet(1);
        if (failure) {
            const Report head{failure->when, failure->usage, failure->remote};
            const std::string_view text = std::string_view(failure->text).substr(0, kMaxText);
            packet = std::vector<std::byte>(sizeof(head) + text.size());
            std::memcpy(packet.data(), &head, sizeof(head));
            std::memcpy(packet.data() + sizeof(head), text.data(), text.size());
        }
        send_packet(socket, packet, {}, Deadline::after(std::chrono::seconds(1)));
    } catch (const std::exception&) {  // the exit code still shows that the rank failed
    }
}

Heard take_report(int socket, RankFailure& failure) {
    SocketPacket packet;
    Report head{};
    if (receive_packet(socket, sizeof(head) + kMaxText, packet, Deadline::after({})) != Io::kDone) {
        return Heard::kNothing;
    }
    if (packet.bytes.size() < sizeof(head)) {
        return Heard::kItsEnd;
    }
    std::memcpy(&head, packet.bytes.data(), sizeof(head));
    failure.when = head.when;
    failure.usage = head.usage;
    failure.remote = head.remote;
    failure.text.assign(reinterpret_cast<const char*>(packet.bytes.data()) + sizeof(head),
                        packet.bytes.size() - sizeof(head));
    return Heard::kItsFailure;
}

}  // namespace symm
