#include "common/ranks/rank_options.hpp"

namespace symm {

void add_rank_options(CLI::App& app, RankOptions& options, int most) {
    add_number_option(
        app, "--ranks", options.ranks, 1, most,
        fmt::format("Ranks, 1 to {}; where there are more ranks than GPUs, ranks share GPUs",
                    most));
    app.add_option_function<std::string>(
           "--mode", [&options](const std::string& name) { options.mode = rank_mode(name); },
           "What a rank is: a process, or a thread of one process")
        ->type_name("process|thread")
        ->default_str(std::string(name_of(options.mode)));
}

}  // namespace symm
