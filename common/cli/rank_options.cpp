#include "common/cli/rank_options.hpp"

namespace symm {

void add_rank_options(CLI::App& app, RankOptions& options, int most) {
    add_number_option(
        app, "--ranks", options.ranks, 1, most,
        fmt::format("Number of ranks, 1 to {}; if there are more ranks than GPUs, ranks share GPUs",
                    most));
    add_choice(app, "--mode", options.mode,
               "Run each rank as a process, or as a thread of one process")
        ->type_name("process|thread");
}

}  // namespace symm
