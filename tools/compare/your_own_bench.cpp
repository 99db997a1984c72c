// Times both collectives on ranks that are threads: captured in a graph, every way in turn, after a
// check that all ways give the same results, which your_own_test checks.

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/nccl/turn_timer.hpp"
#include "symm/collectives/all_reduce_rms_norm.hpp"
#include "symm/collectives/all_to_all.hpp"

namespace symm::collectives {
namespace {

constexpr std::string_view kUsage =
    R"(usage: your_own_bench rmsnorm [RANKS [ELEMENTS OF A ROW [MOST ROWS]]]     2 4096 2048
       your_own_bench alltoall [RANKS [MOST BYTES OF A PART]]             2 1048576
)";

/// One way to make a call.
struct Candidate {
    std::string name;
    std::function<void()> call;
    bool is_checked = true;
};

/// Writes elements of bfloat16 from 1 to 2, which differ by rank and index.
void fill(CUdeviceptr to, std::size_t bytes, int rank) {
    std::vector<std::uint16_t> elements(bytes / 2);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<std::uint16_t>(
            0x3f80U | (31 * i + i / 509 + 7 * static_cast<unsigned>(rank)) % 128);
    }
    symm::copy_to_device(to, elements.data(), bytes);
}

/// A rank's table: a line for each size, a column for each candidate.
class Table {
public:
    explicit Table(symm::Rank& of) : rank(of), communicator(of) {}

    symm::Rank& rank;
    symm::Communicator communicator;
    symm::Stream stream;
    std::vector<Candidate> candidates;

    void head(std::string_view unit) const {
        std::string line = fmt::format("{:>10}", unit);
        for (const Candidate& candidate : candidates) {
            line += fmt::format(" {:>10}", candidate.name);
        }
        rank.headline("{}   (microseconds)\n", line);
    }

    /// The median of each candidate's times, after a check of its `bytes` bytes of output.
    /// `prepare` resets what calls change.
    void line(std::size_t size, CUdeviceptr out, std::size_t bytes,
              const std::function<void()>& prepare) {
        check(out, bytes, prepare);
        const bool emulated = symm::is_emulated();
        const int repeats = emulated ? 1 : 20;  // in a graph, and of the graph
        const symm::TurnTimer timer{rank, stream, repeats, repeats, [&](std::string_view what) {
                                        communicator.synchronize(stream, what);
                                    }};
        const auto times = symm::medians_in_turn(
            candidates.size(), emulated ? 1 : 9,
            [&](std::size_t c) { return timer.time(candidates[c].call, [] {}); });
        std::string line = fmt::format("{:>10}", size);
        for (const double time : times) {
            line += emulated ? fmt::format(" {:>10}", "emulated") : fmt::format(" {:>10.2f}", time);
        }
        rank.headline("{}\n", line);
    }

private:
    /// Requires that each candidate writes all of `out`, with the bits of the first.
    void check(CUdeviceptr out, std::size_t bytes, const std::function<void()>& prepare) {
        constexpr std::uint16_t kPoison = 0xffff;
        std::vector<std::uint16_t> first;
        for (const Candidate& candidate : candidates) {
            if (!candidate.is_checked) {
                continue;
            }
            prepare();
            symm::fill(out, 0xff, bytes);
            rank.bootstrap().barrier("inputs are written");
            candidate.call();
            communicator.synchronize(stream, "the checked call");
            std::vector<std::uint16_t> seen(bytes / 2);
            symm::copy_to_host(seen.data(), out, bytes);
            first = first.empty() ? seen : first;
            for (std::size_t i = 0; i < seen.size(); ++i) {
                if (seen[i] != first[i] || seen[i] == kPoison) {
                    throw std::runtime_error(fmt::format(
                        "rank {}: element {} is {:#x} by {}, and {:#x} by {}", rank.rank(), i,
                        seen[i], candidate.name, first[i], candidates.front().name));
                }
            }
            rank.bootstrap().barrier("results are checked");
        }
    }
};

void time_rms_norm(symm::Rank& rank, unsigned hidden, unsigned most_rows) {
    Table table(rank);
    const AllReduceRmsNorm rms_norm(table.communicator);
    const std::size_t row = 2 * std::size_t{hidden};
    const CUdeviceptr x = table.communicator.allocate(row * most_rows);
    const CUdeviceptr residual = table.communicator.allocate(row * most_rows);
    const symm::DeviceMemory out(row * most_rows);
    const symm::DeviceMemory weight(row);
    fill(x, row * most_rows, rank.rank());
    fill(weight.address(), row, 0);
    RmsNormRows all{
        x, residual, out.address(), weight.address(), 1, hidden, symm::DataType::kBfloat16, 1e-5F};
    for (const RmsNormWay way :
         {RmsNormWay::kAuto, RmsNormWay::kPacks, RmsNormWay::kOneShot, RmsNormWay::kTwoShots}) {
        table.candidates.push_back({std::string(symm::name_of(way)),
                                    [&, way] { rms_norm(all, table.stream.get(), way); }});
    }
    const auto all_reduce = [&] {
        table.communicator.all_reduce(x, residual, std::size_t{all.rows} * hidden, all.type,
                                      symm::ReduceOp::kSum, table.stream.get());
    };
    table.candidates.push_back({"allreduce", all_reduce, false});  // alone, to compare with
    table.head("rows");
    for (; all.rows <= most_rows; all.rows *= 2) {
        const std::size_t bytes = row * all.rows;
        table.line(all.rows, all.out, bytes, [&] { fill(residual, bytes, 0); });
    }
    rank.bootstrap().barrier("done");
}

void time_all_to_all(symm::Rank& rank, std::size_t most) {
    Table table(rank);
    const AllToAll all_to_all(table.communicator);
    std::string why_not;
    const auto library = symm::load_nccl(rank, why_not);
    const auto nccl = library ? symm::connect_nccl(rank, *library) : nullptr;
    const auto ranks = static_cast<std::size_t>(rank.size());
    const CUdeviceptr out = table.communicator.allocate(ranks * most);
    const symm::DeviceMemory in(ranks * most);
    fill(in.address(), ranks * most, rank.rank());
    std::size_t part = 1024;
    const auto by = [&](AllToAllWay way) {
        return [&, way] { all_to_all({in.address(), out, part}, table.stream.get(), way); };
    };
    table.candidates = {{"auto", by(AllToAllWay::kAuto)}, {"windows", by(AllToAllWay::kWindows)}};
    if (nccl != nullptr) {
        table.candidates.push_back(
            {"nccl", [&] { nccl->all_to_all(in.address(), out, part, table.stream.get()); }});
    } else {
        rank.headline("NCCL skipped: {}\n", why_not);
    }
    table.head("bytes");
    for (; part <= most; part *= 4) {
        table.line(part, out, ranks * part, [] {});
    }
    rank.bootstrap().barrier("done");
}

/// Argument `i`, a number, or `otherwise` if there is none.
unsigned number(const std::vector<std::string_view>& arguments, std::size_t i, unsigned otherwise) {
    if (i >= arguments.size()) {
        return otherwise;
    }
    const std::string_view text = arguments[i];
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    symm::refuse_unless(error == std::errc() && end == text.end() && value != 0,
                        "'{}' is no number from 1 on", text);
    return value;
}

}  // namespace
}  // namespace symm::collectives

int main(int argc, char** argv) {
    using namespace symm::collectives;
    symm::turn_multicast_off();  // in NCCL, which the labs do without
    // NCCL registers buffers of captured calls, which hangs in AllToAll from parts of 1M on (2.28).
    ::setenv("NCCL_GRAPH_REGISTER", "0", 1);
    try {
        const std::vector<std::string_view> arguments(argv + 1, argv + argc);
        const std::string_view collective = arguments.empty() ? "" : arguments[0];
        const bool is_rms_norm = collective == "rmsnorm";
        if ((!is_rms_norm && collective != "alltoall") ||
            arguments.size() > (is_rms_norm ? 4U : 3U)) {
            throw std::invalid_argument(std::string(kUsage));
        }
        const symm::RankOptions ranks{.ranks = static_cast<int>(number(arguments, 1, 2)),
                                      .mode = symm::RankMode::kThread};
        const unsigned size = number(arguments, 2, is_rms_norm ? 4096 : 1 << 20);
        const unsigned most_rows = number(arguments, 3, 2048);
        return symm::run_ranks(ranks, [&](symm::Rank& rank) {
            is_rms_norm ? time_rms_norm(rank, size, most_rows) : time_all_to_all(rank, size);
        });
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
