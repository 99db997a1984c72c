#include "common/bootstrap/meeting.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <stdexcept>
#include <vector>

#include "common/sys/refuse_unless.hpp"

namespace symm {
namespace {

/// What a rank tells the others.
struct Meeting {
    std::uint64_t magic;  ///< Differs if ranks have other versions, or the bytes are mixed up.
    std::int32_t rank;
    std::int32_t ranks;
    std::uint64_t host;       ///< The machine's boot, and the network namespace.
    std::uint64_t random[2];  ///< Rank 0's names the run.
};

std::uint64_t this_host() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network {};
    ::stat("/proc/self/ns/net", &network);
    return std::hash<std::string>{}(fmt::format("{} {}", boot, network.st_ino));
}

}  // namespace

std::string socket_name(std::string_view name) {
    return fmt::format("symm-c-{}-{:016x}", ::geteuid(), std::hash<std::string_view>{}(name));
}

std::string name_by_allgather(int rank, int ranks, std::uint32_t version,
                              const Allgather& allgather) {
    std::random_device random;
    const std::uint64_t magic = 0x73796d6d00000000U + version;
    const Meeting mine{magic, rank, ranks, this_host(), {random(), random()}};
    std::vector<Meeting> all(static_cast<std::size_t>(ranks));
    if (const int result = allgather(&mine, all.data(), sizeof mine); result != 0) {
        throw std::runtime_error(
            fmt::format("the caller's allgather returned {} on rank {}", result, rank));
    }
    for (int r = 0; r < ranks; ++r) {
        const Meeting& other = all[static_cast<std::size_t>(r)];
        refuse_unless(other.magic == magic && other.rank == r && other.ranks == ranks,
                      "what the caller's allgather put in place {} of {} is not from rank {} of {} "
                      "with the same version of libsymm.so",
                      r, ranks, r, ranks);
        refuse_unless(
            other.host == mine.host,
            "ranks {} and {} are on different machines, or in containers with different networks: "
            "memory is shared within one machine (docker run --network host)",
            rank, r);
    }
    return fmt::format("allgather {:x} {:x}", all[0].random[0], all[0].random[1]);
}

}  // namespace symm
