#include "labs/06_allreduce/algorithms/ladder/ladder_command.hpp"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <chrono>
#include <vector>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/nccl/turn_timer.hpp"
#include "common/ranks/ranks.hpp"
#include "common/sys/file.hpp"
#include "common/sys/table.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/06_allreduce/algorithms/ladder/ladder_check.hpp"

namespace symm {
namespace {

using ladder::Buffers;
using ladder::Ladder;

constexpr int kChecked = 3;  ///< Calls of each size, each with another input.

/// One rank's run through the rungs and sizes.
class LadderRun {
public:
    LadderRun(Rank& rank, int rung, std::vector<std::size_t> sizes)
        : rank_(rank), rung_(rung), sizes_(std::move(sizes)), check_(rank.rank(), rank.size()) {}

    void run() {
        std::span<const ladder::RungRow> rows = ladder::rungs();
        static_assert(kLadderRungs == ladder::kRungs);
        if (rung_ != 0) {
            rows = rows.subspan(static_cast<std::size_t>(rung_ - 1), 1);
        }
        for (const ladder::RungRow& row : rows) {
            Ladder rung(rank_, row, sizes_.back() / sizeof(float));
            const Candidate candidate{
                rung.buffers(), [&](std::size_t count) { rung.call(count, stream_); },
                [&](std::string_view what) { rung.synchronize(stream_, what); },
                rung.fits_a_graph()};
            add(row.name, row.idea, candidate);
        }
        std::string why_not = is_emulated() ? "emulated GPUs" : "";
        const auto library = load_nccl(rank_, why_not);
        if (library != nullptr) {
            const DeviceMemory in(sizes_.back());  // longer than NCCL, which may register them
            const DeviceMemory out(sizes_.back());
            const auto nccl = connect_nccl(rank_, *library);
            version_ = library->version();
            add("NCCL", "version " + version_,
                {{in.address(), out.address()},
                 [&](std::size_t count) {
                     nccl->all_reduce(in.address(), out.address(), count,
                                      static_cast<int>(DataType::kFloat),
                                      static_cast<int>(ReduceOp::kSum), stream_.get());
                 },
                 [&](std::string_view what) { stream_.synchronize(what); },
                 true});
            rank_.bootstrap().barrier("NCCL's calls have ended");
        } else if (!is_emulated()) {
            rank_.headline("NCCL comparison skipped: {}\n", why_not);
        }
    }

    void print() const {
        TableRows table{{"rung"}};
        for (const std::size_t size : sizes_) {
            table[0].push_back(format_bytes(size));
        }
        for (const Row& row : rows_) {
            table.push_back({fmt::format("{}: {}", row.name, row.idea)});
            for (const double time : row.times) {
                table.back().push_back(is_emulated() ? "right" : fmt::format("{:.2f}", time));
            }
        }
        rank_.headline("{}\nAllReduce, {} ranks, float, sum{}\n\n{}\nAll results are right.\n",
                       describe_driver(), rank_.size(), is_emulated() ? "" : ", us per call",
                       table_text(table));
    }

    /// The measurement as docs/results.py reads it.
    std::string json() const {
        std::vector<std::string> rows;
        for (const Row& row : rows_) {
            std::string line = fmt::format("[\"{}\"", row.name);
            for (const double time : row.times) {
                line += is_emulated() ? ", null" : fmt::format(", {:.2f}", time);
            }
            rows.push_back(line + "]");
        }
        std::vector<std::string> columns{"rung"};
        for (const std::size_t size : sizes_) {
            columns.push_back(format_bytes(size));
        }
        return fmt::format(
            "{{\"context\": {{\"title\": \"The ladder\", \"machine\": \"{} GPUs\", \"date\": "
            "\"{:%FT%TZ}\", \"command\": \"06_allreduce --ladder --ranks {} --bytes {}:{}\", "
            "\"nccl\": \"{}\", \"emulated\": \"{}\", \"unit\": \"us\"}},\n"
            "\"columns\": [\"{}\"],\n\"rows\": [\n{}\n]}}\n",
            rank_.size(), fmt::gmtime(std::chrono::system_clock::now()), rank_.size(),
            format_bytes(sizes_.front()), format_bytes(sizes_.back()), version_,
            is_emulated() ? "yes" : "no", fmt::join(columns, "\", \""), fmt::join(rows, ",\n"));
    }

private:
    struct Candidate {
        Buffers buffers;
        std::function<void(std::size_t count)> call;
        std::function<void(std::string_view what)> synchronize;
        bool fits_a_graph;
    };
    struct Row {
        std::string name;
        std::string idea;
        std::vector<double> times;
    };

    void add(std::string_view name, std::string_view idea, const Candidate& candidate) {
        rows_.push_back({std::string(name), std::string(idea), {}});
        for (const std::size_t size : sizes_) {
            rows_.back().times.push_back(measure(candidate, size / sizeof(float)));
        }
    }

    /// Checks calls, then times them; 0 on emulated GPUs.
    double measure(const Candidate& candidate, std::size_t count) {
        const auto check = [&] {
            rank_.bootstrap().together(rows_.back().name, [&] {
                candidate.synchronize("the calls");
                check_.check(stream_, candidate.buffers, count);
            });
        };
        const auto checked_call = [&] {
            check_.prepare(stream_, candidate.buffers, count);
            candidate.call(count);
            check();
        };
        for (int i = 0; i < kChecked; ++i) {
            checked_call();
        }
        if (is_emulated()) {
            return 0;
        }
        const TurnTimer timer{rank_, stream_, candidate.fits_a_graph ? 100 : 10,
                              candidate.fits_a_graph ? 1 : 0, candidate.synchronize};
        const double time = medians_in_turn(1, 5, [&](std::size_t) {
            return timer.time(
                [&] { candidate.call(count); },
                [&] { Verifier::poison(stream_, candidate.buffers.out, count * sizeof(float)); });
        })[0];
        if (candidate.buffers.residual == 0) {
            check();
        } else {  // the timed calls have added up their own results
            checked_call();
        }
        return time;
    }

    Rank& rank_;
    int rung_;
    std::vector<std::size_t> sizes_;
    ladder::LadderCheck check_;
    Stream stream_;
    std::string version_;
    std::vector<Row> rows_;
};

}  // namespace

int run_ladder(int rung, int ranks, const ByteRange& sizes, std::size_t factor,
               const std::string& json) {
    if (sizes.last > kMostLadderBytes) {
        throw UsageError("--ladder makes calls of up to {}, and --bytes is {}: use a smaller one",
                         format_bytes(kMostLadderBytes), format_bytes(sizes.last));
    }
    std::vector<std::size_t> all;
    for (std::size_t bytes = sizes.first; bytes <= sizes.last; bytes *= factor) {
        all.push_back(bytes);
    }
    std::string text;
    const int status = run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        LadderRun run(rank, rung, all);
        run.run();
        run.print();
        if (rank.rank() == 0) {
            text = run.json();
        }
    });
    if (status == 0 && !json.empty()) {
        write_file(json, text, "--json " + json);
    }
    return status;
}

}  // namespace symm
