// 04_shm_transport: a ring of GPUs that cannot reach each other, through host memory.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/simt/back_off.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/named.hpp"
#include "common/sys/table.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/02_access/access.hpp"
#include "labs/04_shm_transport/transport/transport.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    TransportOptions transport;
    std::string path = "auto";
    std::size_t bytes = 1 << 20;
    int iterations = 3;
    int silent = -1;
};

constexpr std::array<std::string_view, 3> kPaths{"auto", "cumem", "posix"};

void require_sizes(const Rank& rank, const Options& options) {
    if (options.bytes == 0 || options.bytes % 4 != 0) {
        throw UsageError("--bytes {} is not a multiple of 4: pass, for example, --bytes 1M",
                         options.bytes);
    }
    const std::size_t memory = rank.gpu().total_memory();
    if (options.bytes > memory / 2) {
        throw UsageError(
            "--bytes {} twice, to send and to receive, is more than the {} of device {}",
            format_bytes(options.bytes), format_bytes(memory), rank.device());
    }
    if (options.silent >= rank.size()) {
        throw UsageError("--silent {} is not a rank: the ranks are 0 to {}", options.silent,
                         rank.size() - 1);
    }
}

struct Buffers {
    DeviceBuffer source;
    DeviceBuffer destination;
    Gpu gpu;
};

/// Rank 0 sends five messages of three steps at once, and rank 1 receives one after the other.
/// Prints the FIFO, as rank 0's host sees it, each time that no side can go on. Collective.
void show_fifo(Rank& rank, const Buffers& buffers, const TransportOptions& options) {
    constexpr std::uint64_t kMessages = 5;
    constexpr std::uint64_t kEach = 3;             // steps
    constexpr std::uint64_t kBytes = kEach * 128;  // all five fit into a granule
    const int sender = 0;
    ShmTransport transport(rank, {&sender, rank.rank() == 1 ? 1U : 0U},
                           {.channels = 1, .slot_bytes = 128, .path = options.path});
    const CUstream stream = buffers.gpu.stream();
    const auto words = [](const DeviceBuffer& buffer) -> test_pattern::Range {
        return {buffer.base(), kMessages * kBytes / 4, 4};
    };
    test_pattern::fill(buffers.gpu, words(buffers.source));
    TableRows table{{"messages received", "tail", "head", "credit", "slots"}};
    const auto wait_for = [&](std::uint64_t tail, std::uint64_t head) {
        const ConnectionEnd end = transport.connection_to(1).end(0);
        const Deadline deadline = Deadline::standard();
        for (int i = 0; simt::load(&end.send->head, simt::Order::kRelaxed) != head ||
                        simt::load(&end.receive->tail, simt::Order::kRelaxed) != tail;
             ++i) {
            rank.bootstrap().throw_async_error("04: the FIFO");
            if (deadline.passed()) {
                throw std::runtime_error(
                    fmt::format("rank 0's host waited {:.3g} s for tail {} and head {} of the FIFO",
                                deadline.seconds(), tail, head));
            }
            simt::back_off(i);
        }
        std::string slots(kSteps, '.');
        for (std::uint64_t step = head; step < tail; ++step) {
            slots[step % kSteps] = '#';
        }
        table.push_back({std::to_string(head / kEach), std::to_string(tail), std::to_string(head),
                         std::to_string(head + kSteps - tail), slots});
    };
    for (std::uint64_t received = 0; received <= kMessages; ++received) {
        rank.bootstrap().together("04: the FIFO", [&] {
            if (rank.rank() == 1 && received > 0) {
                const std::uint64_t offset = (received - 1) * kBytes;
                transport.receive({0, buffers.destination.base() + offset, kBytes}, stream);
                transport.finish(buffers.gpu.owned_stream());
            } else if (rank.rank() == 0) {
                for (std::uint64_t i = 0; received == 0 && i < kMessages; ++i) {
                    transport.send({1, buffers.source.base() + i * kBytes, kBytes}, stream);
                }
                wait_for(std::min(kMessages * kEach, received * kEach + kSteps), received * kEach);
            }
        });
    }
    rank.bootstrap().together("04: the end of the FIFO", [&] {
        transport.finish(buffers.gpu.owned_stream());
        const auto result = test_pattern::compare(buffers.gpu, words(buffers.destination));
        if (rank.rank() == 1 && !result.right()) {
            throw std::runtime_error(fmt::format("from rank 0: {}", result.describe()));
        }
    });
    rank.headline("{}", table_text(table));
}

void ring(Rank& rank, const Options& options) {
    const int next = (rank.rank() + 1) % rank.size();
    const int previous = (rank.rank() + rank.size() - 1) % rank.size();
    const Buffers buffers = rank.bootstrap().together("04: buffers", [&] {
        return Buffers{DeviceBuffer(rank.device(), options.bytes),
                       DeviceBuffer(rank.device(), options.bytes), Gpu(rank.device())};
    });
    ShmTransport transport(rank, {&previous, 1}, options.transport);
    rank.headline("{}", describe_driver());
    const HostPathChoice& path = transport.path();
    rank.headline("\n1. Host memory that GPUs share: {}", name_of(path.path));
    if (!path.why_not_cumem.empty()) {
        rank.headline("   not cuMem: {}", path.why_not_cumem);
    }
    rank.headline("\n2. Each rank owns a segment. Slots: near the {}; copy engine: {}",
                  name_of(options.transport.locality), name_of(options.transport.proxy));
    const HostSegment& segment = transport.segment();
    const std::string node = path.path == HostPath::kCuMem
                                 ? fmt::format(" on NUMA node {}", host_node_of(rank.device()))
                                 : "";
    rank.say_in_order(fmt::format("pid {}, GPU {}: {} at {:#x}{}, shared with its neighbours",
                                  ::getpid(), rank.device(), format_bytes(segment.size()),
                                  segment.address(), node));

    const std::uint64_t slot = transport.connection_from(previous).slot_bytes;
    rank.headline("\n3. A ring: each rank sends {} to the next, in {} step(s) of {}",
                  format_bytes(options.bytes), (options.bytes - 1) / slot + 1, format_bytes(slot));
    double microseconds = 0;
    for (int i = 0; i < options.iterations; ++i) {
        // Every rank has its own seed in each iteration: old data and another rank's data count as
        // wrong.
        const auto words = [&](const DeviceBuffer& buffer, int sender) -> test_pattern::Range {
            return {buffer.base(), options.bytes / 4,
                    static_cast<std::uint32_t>(sender + i * kMaxRanks)};
        };
        rank.bootstrap().together("04: transfer", [&] {
            test_pattern::fill(buffers.gpu, words(buffers.source, rank.rank()));
            if (rank.rank() == options.silent) {
                return;
            }
            const auto start = std::chrono::steady_clock::now();
            transport.send_receive({next, buffers.source.base(), options.bytes},
                                   {previous, buffers.destination.base(), options.bytes},
                                   buffers.gpu.stream());
            transport.finish(buffers.gpu.owned_stream());
            const std::chrono::duration<double, std::micro> took =
                std::chrono::steady_clock::now() - start;
            microseconds = took.count();
            const auto result =
                test_pattern::compare(buffers.gpu, words(buffers.destination, previous));
            if (!result.right()) {
                throw std::runtime_error(
                    fmt::format("from rank {}: {}", previous, result.describe()));
            }
        });
    }
    // Times of emulated GPUs mean nothing.
    const std::string speed =
        is_emulated() ? ""
                      : fmt::format(", the last in {:.0f} us, {:.2f} GB/s", microseconds,
                                    static_cast<double>(options.bytes) * 1e-3 / microseconds);
    rank.say_in_order(fmt::format("{} message(s) from rank {}, every word right{}",
                                  options.iterations, previous, speed));
    if (rank.size() > 1) {
        rank.headline(
            "\n4. Rank 0 sends five messages of three steps; rank 1 receives them one by one.\n"
            "   # is a filled slot. Where the credit is 0, the sender waits.");
        show_fifo(rank, buffers, options.transport);
    }
    rank.headline("\nAll checks passed.");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Lab 04: a transport without peer access. Each rank's GPU writes to host memory, and the\n"
        "GPU of the next rank, in another process, reads it there: through a FIFO of eight slots\n"
        "and two counters. All data is checked.",
        "04_shm_transport");
    Options options;
    TransportOptions& transport = options.transport;
    add_rank_options(app, options.ranks);
    add_bytes_option(app, "--bytes", options.bytes, "Bytes of each message, a multiple of 4");
    add_number_option(app, "--iters", options.iterations, 1, std::numeric_limits<int>::max(),
                      "Number of messages, one after the other");
    app.add_option("--path", options.path,
                   "The path to shared host memory: auto (cuMem if all ranks can), cumem\n"
                   "(cuMemCreate on a NUMA node) or posix (memfd and cuMemHostRegister)")
        ->capture_default_str();
    add_number_option(app, "--channels", transport.channels, 0U,
                      std::numeric_limits<std::uint32_t>::max(),
                      "Channels from one rank to another, each served by a block; 0: 32, with a\n"
                      "proxy 4, emulated 2");
    add_bytes_option(app, "--slot", transport.slot_bytes,
                     "Bytes of each of a channel's eight slots, a multiple of 128; 0: 64K, with a\n"
                     "proxy on a GPU 2M");
    add_choice(app, "--locality", transport.locality,
               "Side whose segment holds the slots: sender or receiver");
    add_choice(app, "--proxy", transport.proxy,
               "Side whose copy engine moves the data, run by a host thread: none, sender,\n"
               "receiver or both");
    add_number_option(app, "--silent", options.silent, 0, kMaxRanks - 1,
                      "This rank sends and receives nothing, to see what the others report")
        ->default_str("");
    return run_main(app, argc, argv, [&] {
        if (const std::size_t path = find_name(kPaths, "--path", options.path); path > 0) {
            transport.path = static_cast<HostPath>(path - 1);
        }
        return run_ranks(options.ranks, [&](Rank& rank) {
            require_sizes(rank, options);
            try {
                ring(rank, options);
            } catch (const std::invalid_argument& error) {
                throw UsageError(error.what());
            }
        });
    });
}
