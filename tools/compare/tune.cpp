// Measures the fastest algorithm for each size, and writes the tuner's table.

#include <filesystem>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "labs/06_allreduce/communicator/memory_budget.hpp"
#include "tools/compare/measure_table.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    CLI::App app("Measures the fastest algorithm for each size, and writes the tuner's table.",
                 "06_allreduce_tune");
    RankOptions ranks;
    std::string bytes;
    std::string file;
    add_rank_options(app, ranks, kMaxAllReduceRanks);
    app.add_option("--bytes", bytes, "The sizes: powers of two in this range")
        ->default_str("1K:1G, emulated 1K:1M");
    add_output_option(app, "FILE", file,
                      "The table to write; rows for other numbers of ranks are kept")
        ->required();
    app.footer(
        "Try: 06_allreduce_tune --ranks 2 --mode thread my_machine.txt\n"
        "     SYMM_TUNING=my_machine.txt 06_allreduce --bytes 1K:1G");
    return run_main(app, argc, argv, [&] {
        if (bytes.empty()) {
            bytes = is_emulated() ? "1K:1M" : "1K:1G";
        }
        const ByteRange sizes = parse_byte_range("--bytes", bytes);
        TuningTable table = TuningTable::from_environment();
        if (std::filesystem::exists(file)) {
            table = TuningTable::read(file, file);
        }
        return run_ranks(ranks, [&](Rank& rank) {
            require_memory(rank, sizes.last, "--bytes");
            Communicator communicator(rank, {.limit = Deadline::standard_limit()});
            rank.headline("{}\n", describe_driver());
            tune(rank, communicator, sizes, table, file);
        });
    });
}
