// Times both collectives: captured in a graph, every way in turn, after a check of its results.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <symm/common/cuda/driver.hpp>
#include <symm/common/nccl/nccl_communicator.hpp>
#include <symm/common/nccl/turn_timer.hpp>
#include <vector>

#include "all_to_all.hpp"
#include "checks.hpp"
#include "rows_check.hpp"

namespace your_own {
namespace {

using symm::Communicator;
using symm::Rank;
using symm::Stream;

constexpr std::string_view kUsage =
    R"(usage: your_own_bench [rmsnorm|alltoall] [option value]...
  --ranks 2             ranks
  --mode process        or thread
  --type bfloat16       or half, float
  --hidden 4096         elements of a row
  --rows 1:2048         rows, doubled from the first number to the second
  --bytes 1K:1M         alltoall: bytes of a part, times 4
)";

/// From the first to the last, with K and M for 2^10 and 2^20: `1K:1M`.
struct Range {
    std::size_t first;
    std::size_t last;

    static Range parse(const std::string& text) {
        const std::size_t colon = text.find(':');
        const std::size_t first = number(text.substr(0, colon));
        return {first, colon == std::string::npos ? first : number(text.substr(colon + 1))};
    }
    static std::size_t number(const std::string& text) {
        std::size_t used = 0;
        std::size_t value = 0;
        try {
            value = std::stoul(text, &used);
        } catch (const std::exception&) {
            used = 0;
        }
        const std::string unit = text.substr(used);
        if (used == 0 || value == 0 || (!unit.empty() && unit != "K" && unit != "M")) {
            throw std::invalid_argument(fmt::format("'{}' is no number such as 64K", text));
        }
        return value << (unit == "K" ? 10 : unit == "M" ? 20 : 0);
    }
};

struct Options {
    std::string collective = "rmsnorm";
    symm::RankOptions ranks{.ranks = 2};
    symm::DataType type = symm::DataType::kBfloat16;
    unsigned hidden = 4096;
    Range rows{1, 2048};
    Range bytes{1 << 10, 1 << 20};

    static Options parse(const std::vector<std::string>& words) {
        Options options;
        std::size_t i = 0;
        if (!words.empty() && words[0][0] != '-') {
            options.collective = words[i++];
        }
        for (; i < words.size(); i += 2) {
            const std::string& name = words[i];
            if (i + 1 == words.size()) {
                throw std::invalid_argument(fmt::format("{} has no value", name));
            }
            options.set(name, words[i + 1]);
        }
        if (options.collective != "rmsnorm" && options.collective != "alltoall") {
            throw std::invalid_argument(fmt::format("no collective {}", options.collective));
        }
        return options;
    }

private:
    void set(const std::string& name, const std::string& value) {
        if (name == "--ranks") {
            ranks.ranks = static_cast<int>(Range::number(value));
        } else if (name == "--mode") {
            ranks.mode = symm::named<symm::RankMode>(name, value);
        } else if (name == "--type") {
            type = symm::named<symm::DataType>(name, value);
        } else if (name == "--hidden") {
            hidden = static_cast<unsigned>(Range::number(value));
        } else if (name == "--rows") {
            rows = Range::parse(value);
        } else if (name == "--bytes") {
            bytes = Range::parse(value);
        } else {
            throw std::invalid_argument(fmt::format("no option {}", name));
        }
    }
};

/// One way to make a call. `check` makes one and checks its results. Both are collective.
struct Candidate {
    std::string name;
    std::function<void()> call;
    std::function<void()> check;
};

/// A line of the table: the median of each candidate's times.
void time_in_turn(Rank& rank, Communicator& communicator, const Stream& stream,
                  const std::string& size, const std::vector<Candidate>& candidates) {
    const auto synchronize = [&](std::string_view what) { communicator.synchronize(stream, what); };
    for (const Candidate& candidate : candidates) {
        candidate.check();
    }
    const bool emulated = symm::is_emulated();
    const symm::TurnTimer timer{rank, stream, emulated ? 1 : 20, emulated ? 1 : 20, synchronize};
    const std::vector<double> times =
        symm::medians_in_turn(candidates.size(), emulated ? 1 : 9,
                              [&](std::size_t c) { return timer.time(candidates[c].call, [] {}); });
    std::string line = fmt::format("{:>10}", size);
    for (const double time : times) {
        line += emulated ? fmt::format(" {:>10}", "emulated") : fmt::format(" {:>10.2f}", time);
    }
    rank.headline("{}\n", line);
}

void headline(Rank& rank, std::string_view size, const std::vector<Candidate>& candidates) {
    std::string line = fmt::format("{:>10}", size);
    for (const Candidate& candidate : candidates) {
        line += fmt::format(" {:>10}", candidate.name);
    }
    rank.headline("{}   (microseconds)\n", line);
}

void time_rms_norm(Rank& rank, const Options& options) {
    Communicator communicator(rank);
    const AllReduceRmsNorm rms_norm(communicator);
    const Stream stream;
    unsigned call = 0;
    for (std::size_t rows = options.rows.first; rows <= options.rows.last; rows *= 2) {
        CheckedRows checked(rank, communicator, options.type, static_cast<unsigned>(rows),
                            options.hidden);
        std::vector<Candidate> candidates;
        for (const RmsNormWay way :
             {RmsNormWay::kAuto, RmsNormWay::kPacks, RmsNormWay::kOneShot, RmsNormWay::kTwoShots}) {
            const auto make = [&, way] { rms_norm(checked.rows(), stream.get(), way); };
            candidates.push_back({std::string(symm::name_of(way)), make, [&, make] {
                                      checked.fill(++call);
                                      make();
                                      communicator.synchronize(stream, "the checked call");
                                      checked.check(call);
                                  }});
        }
        const RmsNormRows& all = checked.rows();
        const auto all_reduce = [&] {
            communicator.all_reduce(all.x, all.residual, std::size_t{all.rows} * all.hidden,
                                    all.type, symm::ReduceOp::kSum, stream.get());
        };
        candidates.push_back({"allreduce", all_reduce, [] {}});  // alone, to compare with
        if (rows == options.rows.first) {
            headline(rank, "rows", candidates);
        }
        time_in_turn(rank, communicator, stream, std::to_string(rows), candidates);
    }
    rank.bootstrap().barrier("done");
}

void time_all_to_all(Rank& rank, const Options& options) {
    Communicator communicator(rank);
    const AllToAll all_to_all(communicator);
    const Stream stream;
    std::string why_not;
    // NCCL registers buffers of captured calls, which hangs here from parts of 1M on (2.28).
    ::setenv("NCCL_GRAPH_REGISTER", "0", 1);
    const auto library = symm::load_nccl(rank, why_not);
    const auto nccl = library ? symm::connect_nccl(rank, *library) : nullptr;
    const auto ranks = static_cast<std::size_t>(rank.size());
    const std::size_t all = ranks * options.bytes.last;
    const CUdeviceptr out = communicator.allocate(all);
    const symm::DeviceMemory in(all);
    for (std::size_t part = options.bytes.first; part <= options.bytes.last; part *= 4) {
        const auto checked = [&, part](const std::function<void()>& call) {
            return [&, part, call] {
                std::vector<unsigned char> bytes(ranks * part);
                for (std::size_t i = 0; i < bytes.size(); ++i) {
                    bytes[i] =
                        static_cast<unsigned char>(rank.rank() * 31 + i / part * 7 + i % part);
                }
                symm::copy_to_device(in.address(), bytes.data(), bytes.size());
                symm::fill(out, 0xff, bytes.size());
                rank.bootstrap().barrier("inputs are written");
                call();
                communicator.synchronize(stream, "the checked call");
                symm::copy_to_host(bytes.data(), out, bytes.size());
                for (std::size_t i = 0; i < bytes.size(); ++i) {
                    const auto expected = static_cast<unsigned char>(
                        i / part * 31 + static_cast<std::size_t>(rank.rank()) * 7 + i % part);
                    require(bytes[i] == expected, "byte {} is {}, not {}", i, bytes[i], expected);
                }
                rank.bootstrap().barrier("results are checked");
            };
        };
        std::vector<Candidate> candidates;
        const auto add = [&](const std::string& name, const std::function<void()>& call) {
            candidates.push_back({name, call, checked(call)});
        };
        const auto by = [&, part](AllToAllWay way) {
            return [&, part, way] { all_to_all(in.address(), out, part, stream.get(), way); };
        };
        add("auto", by(AllToAllWay::kAuto));
        add("windows", by(AllToAllWay::kWindows));
        if (nccl != nullptr) {
            add("nccl", [&, part] { nccl->all_to_all(in.address(), out, part, stream.get()); });
        }
        if (part == options.bytes.first) {
            headline(rank, "bytes", candidates);
        }
        time_in_turn(rank, communicator, stream, std::to_string(part), candidates);
    }
    if (nccl == nullptr) {
        rank.headline("NCCL skipped: {}\n", why_not);
    }
    rank.bootstrap().barrier("done");
}

}  // namespace
}  // namespace your_own

int main(int argc, char** argv) {
    using namespace your_own;
    symm::turn_multicast_off();  // in NCCL, which the labs do without
    Options options;
    try {
        options = Options::parse({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n{}", error.what(), kUsage);
        return 2;
    }
    try {
        return symm::run_ranks(options.ranks, [&](Rank& rank) {
            options.collective == "alltoall" ? time_all_to_all(rank, options)
                                             : time_rms_norm(rank, options);
        });
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
