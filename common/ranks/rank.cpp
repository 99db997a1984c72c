#include "common/ranks/rank.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>

#include "common/cuda/driver.hpp"
#include "common/sys/print.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {
namespace {

// The others are already waiting: a rank without a GPU has to tell them.
Device take_gpu(Bootstrap& bootstrap, std::optional<int> device) {
    try {
        const int devices = device_count();
        if (devices == 0) {
            throw std::runtime_error("the CUDA driver sees no device. Use --driver emulated.");
        }
        return Device(device.value_or(bootstrap.rank() % devices));
    } catch (const std::exception& error) {
        bootstrap.fail(error.what());
        throw;
    }
}

bool same(const CUuuid& a, const CUuuid& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

RankMode common_mode(Bootstrap& bootstrap) {
    // Processes in different containers may have the same number, and forked ones the same
    // random value.
    static const std::uint64_t random =
        std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
    struct Process {
        std::uint64_t random;
        std::uint64_t number;
        auto operator<=>(const Process&) const = default;  // NOLINT: a false report of version 14
    };
    auto all =
        bootstrap.allgather("processes", Process{random, static_cast<std::uint64_t>(::getpid())});
    std::ranges::sort(all);
    const auto different = std::unique(all.begin(), all.end()) - all.begin();
    refuse_unless(different == 1 || different == bootstrap.size(),
                  "{} ranks are in {} processes: they must be threads of one process, or each a "
                  "process of its own",
                  bootstrap.size(), different);
    return different == 1 ? RankMode::kThread : RankMode::kProcess;
}

Rank::Rank(std::unique_ptr<Bootstrap> bootstrap, RankMode mode, std::optional<int> device)
    : bootstrap_(std::move(bootstrap)), mode_(mode), gpu_(take_gpu(*bootstrap_, device)) {
    places_ = bootstrap_->allgather(
        "places", Place{::getpid(), device_uuid(gpu_.ordinal()), is_emulated() ? 1 : 0});
    const auto other = std::ranges::find_if(
        places_, [&](const Place& place) { return place.emulated != places_[0].emulated; });
    if (other != places_.end()) {
        const auto drivers = bootstrap_->allgather_text("drivers", describe_driver());
        const auto rank = other - places_.begin();
        throw BootstrapError(
            static_cast<int>(rank), false,
            "rank {} has another CUDA driver than rank 0, so they can share no memory. "
            "Rank {}: {}. Rank 0: {}. Choose one for all ranks with --driver or "
            "SYMM_DRIVER",
            rank, rank, drivers[static_cast<std::size_t>(rank)], drivers[0]);
    }
}

std::optional<int> Rank::device_of(int peer) const {
    for (int device = 0; device < device_count(); ++device) {
        if (same(device_uuid(device), places_.at(static_cast<std::size_t>(peer)).device)) {
            return device;
        }
    }
    return {};
}

int Rank::most_on_a_device() const {
    const auto sharing = [&](const Place& one) {
        return std::ranges::count_if(places_, [&](const Place& other) {
            return one.process == other.process && same(one.device, other.device);
        });
    };
    std::ptrdiff_t most = 1;
    for (const Place& one : places_) {
        most = std::max(most, sharing(one));
    }
    return static_cast<int>(most);
}

void Rank::tell_if_unwinding() noexcept {
    if (std::uncaught_exceptions() > 0 && is_thread() && creator_.is_this_one()) {
        bootstrap_->fail("an error, which it reports itself");
    }
}

void Rank::say_in_order(std::string_view line) {
    for (int turn = 0; turn < size(); ++turn) {
        if (turn == rank()) {
            say("{}", line);
        }
        bootstrap().barrier("print in order");
    }
}

void Rank::print(std::string_view text, bool prefixed) const {
    if (print_error_ == 0 &&
        !print_lines(STDOUT_FILENO, prefixed ? fmt::format("[{}] ", rank()) : "", text)) {
        print_error_ = errno;
        if (print_error_ == ETIMEDOUT) {
            require_printed();  // the other ranks have waited long enough
        }
    }
}

void Rank::require_printed() const {
    if (print_error_ != 0) {
        throw std::runtime_error(output_error(print_error_));
    }
}

}  // namespace symm
