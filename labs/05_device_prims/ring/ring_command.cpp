#include <fmt/core.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/nccl/turn_timer.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/file.hpp"
#include "common/sys/table.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/commands.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/05_device_prims/ring/ring_communicator.hpp"
#include "labs/05_device_prims/ring/ring_trace.hpp"

namespace symm {
namespace {

struct RingCommandOptions {
    Arithmetic arithmetic;
    RingOptions ring;
    std::vector<Protocol> protocols{kProtocols.begin(), kProtocols.end()};
    ByteRange bytes{64 << 10, 64 << 10};
    bool direct = false;
    bool graph = false;
    std::string why_no_nccl;  ///< Why NCCL is not compared; empty if it is.
    std::string trace;
};

/// Checks the options together.
void complete(RingCommandOptions& options) {
    const auto& [type, op, collective, root] = options.arithmetic;
    if (options.bytes.first % size_of(type) != 0) {
        throw UsageError("--bytes {} is not a whole number of {}s of {} bytes each",
                         format_bytes(options.bytes.first), name_of(type), size_of(type));
    }
    if (options.direct && (options.ring.memory == RingMemory::kHost ||
                           options.protocols.front() != Protocol::kSimple)) {
        throw UsageError("--direct is for --protocol simple with --memory peer");
    }
    if (!options.trace.empty() &&
        (options.protocols.size() > 1 || options.bytes.first != options.bytes.last)) {
        throw UsageError(
            "--trace shows one call: pass one size, such as --bytes 64K, and one --protocol");
    }
    if (options.why_no_nccl.empty() && (collective != Collective::kAllReduce ||
                                        type != DataType::kFloat || op != ReduceOp::kSum)) {
        options.why_no_nccl = "only a float sum by AllReduce is compared";
    }
}

/// NCCL, restricted to rings and one protocol. It reads the environment when a communicator is
/// created. Ranks that are threads wait meanwhile, so none reads it while it changes.
std::unique_ptr<NcclCommunicator> nccl_ring(Rank& rank, const NcclLibrary& library,
                                            Protocol protocol) {
    constexpr std::array<const char*, 3> kNames{"Simple", "LL", "LL128"};
    rank.bootstrap().barrier("before the environment changes");
    if (!rank.is_thread() || rank.rank() == 0) {
        setenv("NCCL_ALGO", "Ring", 1);
        setenv("NCCL_PROTO", kNames.at(static_cast<std::size_t>(protocol)), 1);
    }
    rank.bootstrap().barrier("the environment has changed");
    return connect_nccl(rank, library);
}

/// One rank's run through the sizes.
class RingRun {
public:
    RingRun(Rank& rank, const RingCommandOptions& options)
        : rank_(rank),
          options_(options),
          ring_(rank, options.ring),
          input_(most_bytes(Collective::kReduceScatter)),
          window_(rank, most_bytes(Collective::kAllGather)),
          verifier_(rank.rank(), rank.size()),
          timer_{rank, stream_, is_emulated() ? 2 : 20, options.graph ? 1 : 0,
                 [this](std::string_view what) { ring_.synchronize(stream_, what); }},
          library_(load_nccl(rank, options_.why_no_nccl)) {
        if (!ring_.why_no_ll128().empty()) {
            std::erase(options_.protocols, Protocol::kLL128);
            if (options_.protocols.empty()) {
                throw UsageError("--protocol ll128: " + ring_.why_no_ll128());
            }
        }
    }

    void print_head() const {
        rank_.headline("{}\n", describe_driver());
        rank_.headline("{} on a ring of {} ranks ({} mode) over {} memory, {}, {}, {}{}\n",
                       name_of(arithmetic_.collective), rank_.size(), name_of(rank_.mode()),
                       name_of(options_.ring.memory), name_of(arithmetic_.type),
                       name_of(arithmetic_.op), options_.graph ? "in a graph" : "one by one",
                       options_.direct ? ", direct" : "");
        if (!ring_.why_no_ll128().empty()) {
            rank_.headline("Without LL128: {}\n", ring_.why_no_ll128());
        }
        rank_.headline("NCCL {}\n\n",
                       library_ ? fmt::format("{}, NCCL_ALGO=Ring and the same protocol, without "
                                              "NVLink multicast",
                                              library_->version())
                                : "comparison skipped: " + options_.why_no_nccl);
    }

    void run() {
        TableRows table{{"protocol", "bytes", "channels", "checked", "time us", "bus GB/s",
                         "NCCL us", "NCCL / ours"}};
        for (const Protocol protocol : options_.protocols) {
            const auto nccl = library_ ? nccl_ring(rank_, *library_, protocol) : nullptr;
            for (std::size_t bytes = options_.bytes.first; bytes <= options_.bytes.last;
                 bytes *= 4) {
                table.push_back(row(protocol, bytes, nccl.get()));
            }
        }
        rank_.headline("{}", table_text(table));
        if (!options_.trace.empty()) {
            trace();
        }
    }

private:
    std::size_t most_bytes(Collective with_parts) const {
        const bool parts = arithmetic_.collective == with_parts;
        return options_.bytes.last * static_cast<std::size_t>(parts ? rank_.size() : 1);
    }

    RingRequest call_of(Protocol protocol, std::size_t bytes) const {
        RingRequest call{arithmetic_.collective, protocol, arithmetic_.type, arithmetic_.op};
        call.count = bytes / size_of(call.type);
        call.input = input_.address();
        call.output = window_.local();
        if (options_.direct) {
            call.next_output = window_.peer((rank_.rank() + 1) % rank_.size());
        }
        return call;
    }

    std::vector<std::string> row(Protocol protocol, std::size_t bytes, NcclCommunicator* nccl) {
        const RingRequest call = call_of(protocol, bytes);
        const auto ours = [&] { ring_.queue(call, stream_.get()); };
        const auto theirs = [&] {
            nccl->all_reduce(call.input, call.output, call.count, static_cast<int>(call.type),
                             static_cast<int>(call.op), stream_.get());
        };
        const std::vector<double> times = medians_in_turn(
            nccl != nullptr ? 2 : 1, is_emulated() ? 1 : 5, [&](std::size_t candidate) {
                double time = 0;
                checked(call, [&] {
                    const auto poison = [&] { queue_poison(call); };
                    time = candidate == 0 ? timer_.time(ours, poison) : timer_.time(theirs, poison);
                });
                return time;
            });
        const auto cell = [](const char* format, double value) {
            return is_emulated() ? "(emulated)" : fmt::format(fmt::runtime(format), value);
        };
        return {std::string(name_of(protocol)),
                format_bytes(bytes),
                std::to_string(ring_.channels_of(call)),
                "right",
                cell("{:.1f}", times[0]),
                cell("{:.1f}", static_cast<double>(bytes) / (times[0] * 1e3) * bus_factor()),
                nccl != nullptr ? fmt::format("{:.1f}", times[1]) : "-",
                nccl != nullptr ? fmt::format("{:.2f}", times[1] / times[0]) : "-"};
    }

    /// Bytes that a link carries per byte of the buffer that `--bytes` names, as nccl-tests counts.
    double bus_factor() const {
        const double ranks = rank_.size();
        return arithmetic_.collective == Collective::kAllReduce ? 2 * (ranks - 1) / ranks
               : arithmetic_.parts(rank_.size()) > 1            ? ranks - 1
                                                                : 1;
    }

    void queue_poison(const RingRequest& call) {
        verifier_.poison(stream_, arithmetic_, call.output, call.count);
    }

    /// Fills the input with new numbers, runs `make`, which poisons the output and makes the call,
    /// and checks the result.
    template <class Make>
    void checked(const RingRequest& call, const Make& make) {
        verifier_.fill(stream_, arithmetic_, call.input, call.count);
        make();
        rank_.bootstrap().together("result", [&] {
            try {
                verifier_.check(stream_, arithmetic_, call.output, call.count);
            } catch (const std::runtime_error& wrong) {
                throw std::runtime_error(fmt::format("{} by {}: {}", name_of(call.collective),
                                                     name_of(call.protocol), wrong.what()));
            }
        });
    }

    /// One more call, which is recorded. Rank 0 writes the file.
    void trace() {
        const RingRequest call = call_of(options_.protocols.front(), options_.bytes.first);
        std::vector<TraceSlice> slices;
        checked(call, [&] {
            queue_poison(call);
            slices = record_call(rank_, ring_, stream_, call);
        });
        rank_.bootstrap().together("trace", [&] {
            if (rank_.rank() == 0) {
                const std::string& file = options_.trace;
                write_file(file, chrome_trace(slices, rank_.size()), "--trace");
                rank_.headline("\n{} slices of one call: {} (open it in https://ui.perfetto.dev)\n",
                               slices.size(), file);
            }
        });
    }

    Rank& rank_;
    RingCommandOptions options_;
    Arithmetic arithmetic_ = options_.arithmetic;
    RingCommunicator ring_;
    DeviceMemory input_;
    SymmetricRange window_;
    Verifier verifier_;
    Stream stream_;
    TurnTimer timer_;
    std::unique_ptr<NcclLibrary> library_;
};

}  // namespace

std::function<int(const RankOptions&)> add_ring_command(CLI::App& app) {
    const auto given = std::make_shared<RingCommandOptions>();
    RingCommandOptions& options = *given;
    CLI::App& command = *app.add_subcommand(
        "ring", "Collectives on a ring with Simple, LL and LL128, compared with NCCL's");
    command.fallthrough();  // --ranks and --mode may also follow the command's name
    add_choice(command, "--collective", options.arithmetic.collective,
               "allreduce, reducescatter, allgather, broadcast or reduce");
    command
        .add_option_function<std::string>(
            "--protocol",
            [&options](const std::string& text) {
                if (text != "all") {
                    options.protocols = {named<Protocol>("--protocol", text)};
                }
            },
            "simple, ll, ll128 or all")
        ->default_str("all");
    add_choice(command, "--memory", options.ring.memory,
               "Where the slots lie: peer (the GPUs' memory) or host (lab 04)");
    command
        .add_option_function<std::string>(
            "--bytes",
            [&options](const std::string& text) {
                options.bytes = parse_byte_range("--bytes", text);
            },
            "Size of a rank's part, such as 64K, or a range, such as 1K:64M")
        ->default_str("64K");
    add_choice(command, "--dtype", options.arithmetic.type,
               "float, half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64");
    add_choice(command, "--op", options.arithmetic.op, "sum, prod, min, max or avg");
    add_number_option(command, "--channels", options.ring.channels, 1U, 128U,
                      "Most blocks (default: as suits the memory)")
        ->default_str("");
    command.add_flag("--direct", options.direct,
                     "Simple stores into the next rank's output where it can");
    command.add_flag("--graph", options.graph, "Replay the calls as a graph");
    add_output_option(command, "--trace", options.trace,
                      "Record one call: a JSON file for https://ui.perfetto.dev");
    command.add_flag_callback(
        "--no-nccl", [&options] { options.why_no_nccl = "as requested"; },
        "Do not compare with NCCL");
    command.footer(
        "Try: 05_device_prims ring --ranks 3 --dtype half --op max --bytes 1002\n"
        "     05_device_prims ring --ranks 2 --mode thread --bytes 1K:1G --graph   (on two GPUs)\n"
        "What to look for: LL is the fastest for small sizes, Simple for large ones, LL128\n"
        "in between. NCCL is compared for an allreduce of floats by sum.");
    return [given](const RankOptions& ranks) {
        complete(*given);
        return run_ranks(ranks, [&](Rank& rank) {
            RingRun run(rank, *given);
            run.print_head();
            run.run();
        });
    };
}

}  // namespace symm
