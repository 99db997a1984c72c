#include "common/bench/bench_main.hpp"

#include <unistd.h>

#include <exception>

#include "common/cuda/driver.hpp"
#include "common/environment/environment.hpp"
#include "common/log/print.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {

int bench_main(int argc, char** argv, const std::function<void()>& run) try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return kExitUsage;
    }
    require_environment();
    run();
    benchmark::Shutdown();
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
