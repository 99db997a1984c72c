// Each way of the transport, and its limits: plain copies by the copy engine between a GPU and
// pinned memory, and peer access if there is any. The unpack queue, and plain TCP.
//
// The ranks are threads. The transport's times are GPU times, on the receiver, from the start of
// the first transfer to the end of the last of several queued back to back.

#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/bench/bench_main.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/event.hpp"
#include "common/ranks/ranks.hpp"
#include "common/sys/bytes.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/02_access/access.hpp"
#include "labs/04_shm_transport/transport/transport.hpp"
#include "labs/04_shm_transport/unpack_queue/tcp_unpacker.hpp"

namespace {

using namespace symm;

// Seconds per call of `queue`, which queues work on the stream.
template <class Queue>
double seconds_per_call(int calls, const Stream& stream, const Queue& queue) {
    const Event start;
    const Event end;
    start.record(stream.get());
    for (int i = 0; i < calls; ++i) {
        queue();
    }
    end.record(stream.get());
    stream.synchronize("the copies");
    return elapsed_us(start, end) * 1e-6 / calls;
}

int calls_for(std::size_t bytes) {
    return is_emulated() ? 2 : bytes > (16 << 20) ? 10 : 100;
}

// Reports for each iteration the seconds that `measure` returns, and the rate.
template <class Measure>
void time_all(benchmark::State& state, std::size_t bytes, const Measure& measure) {
    for (auto _ : state) {
        state.SetIterationTime(measure());
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) *
                            static_cast<std::int64_t>(state.iterations()));
}

// Copies by the copy engine, in the current context.
void time_copies(benchmark::State& state, std::size_t bytes, CUdeviceptr to, CUdeviceptr from) {
    const Stream stream;
    const auto copy = [&] {
        cu_check(cuMemcpyAsync(to, from, bytes, stream.get()), "cuMemcpyAsync(size={})", bytes);
    };
    seconds_per_call(1, stream, copy);
    time_all(state, bytes, [&] { return seconds_per_call(calls_for(bytes), stream, copy); });
}

// From a GPU's memory to pinned memory, or the other way.
void pinned_copy(benchmark::State& state, std::size_t bytes, bool to_host) {
    const Device device(0);
    const PinnedMemory host = pinned_calloc(bytes);
    const DeviceBuffer memory(0, bytes);
    time_copies(state, bytes, to_host ? host.address() : memory.base(),
                to_host ? memory.base() : host.address());
}

// From one GPU's memory to another's, over the link between them.
void peer_copy(benchmark::State& state, std::size_t bytes) {
    const Device device(0);
    const DeviceBuffer source(0, bytes);
    const int users[] = {0};
    const SharedBuffer target(1, bytes, users);
    time_copies(state, bytes, target.base(), source.base());
}

// Rank 0 sends, rank 1 receives.
void transfer(benchmark::State& state, std::size_t bytes, const TransportOptions& options) {
    time_all(state, bytes, [&] {
        double seconds = 0;
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            const int peer = 1 - rank.rank();
            const DeviceBuffer memory(rank.device(), bytes);
            const std::span<const int> nobody;
            ShmTransport transport(rank, rank.rank() == 1 ? std::span(&peer, 1) : nobody, options);
            const Stream stream;
            const auto once = [&] {
                const Transfer all{peer, memory.base(), bytes};
                rank.rank() == 0 ? transport.send(all, stream.get())
                                 : transport.receive(all, stream.get());
            };
            once();
            transport.finish(stream);
            rank.bootstrap().barrier("start");
            const double took = seconds_per_call(calls_for(bytes), stream, once);
            transport.finish(stream);
            if (rank.rank() == 1) {
                seconds = took;
            }
        });
        return seconds;
    });
}

// Loopback TCP: into pinned memory and no further, or put together in a GPU's memory by a kernel.
void tcp(benchmark::State& state, std::size_t bytes, bool unpack) {
    const Device device(0);
    constexpr std::size_t kPiece = 1 << 20;
    const std::vector<std::byte> piece(std::min(bytes, kPiece));
    time_all(state, bytes, [&] {
        auto [client, server] = loopback_tcp_pair();
        const DeviceBuffer memory(0, bytes);
        const PinnedMemory pinned = pinned_calloc(kPiece);
        const Stream stream;
        UniqueFd plain;
        std::optional<TcpUnpacker> unpacker;
        if (unpack) {
            unpacker.emplace(std::move(server), 1, 0);
        } else {
            plain = std::move(server);
        }
        const auto message = [&, socket = &client] {
            const std::jthread sender([&] {
                for (std::size_t done = 0; done < bytes; done += piece.size()) {
                    send_piece(*socket, done, piece);
                }
            });
            if (unpack) {
                unpacker->receive(memory.base(), bytes, bytes, stream.get());
                unpacker->finish(stream);
                return;
            }
            const std::size_t headers = bytes / piece.size() * sizeof(PieceHeader);
            for (std::size_t done = 0; done < bytes + headers;) {
                const ssize_t got = ::recv(plain.get(), pinned.data(), 256 << 10, 0);
                if (got <= 0) {
                    throw std::runtime_error("recv() over the loopback failed");
                }
                done += static_cast<std::size_t>(got);
            }
        };
        message();  // loads the kernel, and lets TCP's window grow
        const auto start = std::chrono::steady_clock::now();
        message();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        return took.count();
    });
}

// On emulated GPUs the benchmark only shows that it runs, so small sizes are enough.
template <class Run>
void add(const std::string& name, std::size_t bytes, const Run& run) {
    benchmark::RegisterBenchmark(fmt::format("{}/{}", name, format_bytes(bytes)).c_str(),
                                 [=](auto& state) { run(state, bytes); })
        ->Unit(benchmark::kMicrosecond)
        ->UseManualTime()
        ->Iterations(3);
}

void add_benchmarks() {
    constexpr const char* kProxies[] = {"kernel", "proxy_sender", "proxy_receiver", "proxy_both"};
    tell_driver();
    const std::size_t most = is_emulated() ? 1 << 20 : 64 << 20;
    for (std::size_t bytes = 64 << 10; bytes <= most; bytes *= is_emulated() ? 16 : 32) {
        add("tcp/to_pinned", bytes, [](auto& s, auto n) { tcp(s, n, false); });
        add("tcp/to_gpu_by_kernel", bytes, [](auto& s, auto n) { tcp(s, n, true); });
        add("pinned_copy/to_host", bytes, [](auto& s, auto n) { pinned_copy(s, n, true); });
        add("pinned_copy/to_device", bytes, [](auto& s, auto n) { pinned_copy(s, n, false); });
        if (device_count() > 1 && can_access(0, 1)) {
            add("peer_copy", bytes, peer_copy);
        }
        for (const HostPath path : {HostPath::kCuMem, HostPath::kPosix}) {
            if (path == HostPath::kCuMem && probe_host_path(0).path != path) {
                continue;
            }
            for (unsigned proxy = 0; proxy < 4; ++proxy) {
                const TransportOptions options{.proxy = static_cast<ProxySide>(proxy),
                                               .path = path};
                add(fmt::format("transport/{}/{}", name_of(path), kProxies[proxy]), bytes,
                    [=](auto& s, auto n) { transfer(s, n, options); });
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv, add_benchmarks);
}
