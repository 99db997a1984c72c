#include "common/bench/bench_main.hpp"

#include <unistd.h>

#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_library.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/file.hpp"
#include "common/sys/print.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {

int bench_main(int argc, char** argv, const std::function<void()>& add) try {
    ignore_file_size_signal();
    constexpr std::string_view kOut = "--benchmark_out=";
    for (const std::string_view word : std::span(argv, static_cast<std::size_t>(argc))) {
        if (word.starts_with(kOut)) {
            require_output_file(std::string(word.substr(kOut.size())), word);
        }
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return kExitUsage;
    }
    turn_multicast_off();
    require_environment();
    add();
    if (benchmark::RunSpecifiedBenchmarks() == 0) {
        throw UsageError("no benchmark matches: --benchmark_list_tests lists them");
    }
    benchmark::Shutdown();
    std::cout.flush();
    require_written_output();
    return kExitRight;
} catch (const UsageError& error) {
    report_error(error_text(error));
    return kExitUsage;
} catch (const std::exception& error) {
    report_error(error_text(error));
    return kExitFailed;
}

void tell_driver() {
    print_lines(STDERR_FILENO, "", describe_driver());
    if (is_emulated()) {
        print_lines(STDERR_FILENO, "",
                    "The times below are the emulated driver's: they say nothing about a GPU.");
    }
}

}  // namespace symm
