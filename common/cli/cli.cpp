#include "common/cli/cli.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <system_error>

#include "common/cuda/driver.hpp"
#include "common/emu/configuration.hpp"
#include "common/nccl/nccl_library.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/file.hpp"
#include "common/sys/log.hpp"
#include "common/sys/print.hpp"

namespace symm {
namespace {

// If a program is started without stdin, stdout or stderr (`>&-`), the next descriptor that it
// opens would get that number, and output could go into a socket. /dev/null is opened read-only, so
// that writing to it still fails and the error is noticed.
void open_standard_descriptors() {
    int opened = 0;
    do {
        opened = ::open("/dev/null", O_RDONLY);  // takes the lowest free number
    } while (opened >= 0 && opened <= STDERR_FILENO);
    if (opened >= 0) {
        ::close(opened);
    }
}

int fail(int exit_code, std::string_view text) {
    std::fflush(stdout);
    report_error(text);
    return exit_code;
}

// A wrong argument may be very long, and the error repeats it.
std::string shortened(const std::string& text) {
    constexpr std::size_t kEnd = 400;
    return text.size() <= 2 * kEnd
               ? text
               : fmt::format("{} ... {}", text.substr(0, kEnd), text.substr(text.size() - kEnd));
}

int fail_usage(const CLI::App& app, const std::exception& error) {
    return fail(kExitUsage,
                fmt::format("{} (see {} --help)", shortened(error_text(error)), app.get_name()));
}

void add_driver_option(CLI::App& app) {
    app.add_option_function<std::string>(
           "--driver", [](const std::string& name) { choose_driver(name); },
           "The CUDA driver: auto (native if it finds a GPU, else emulated), native or emulated")
        ->check(CLI::IsMember({"auto", "native", "emulated"}))
        ->type_name("NAME");
}

}  // namespace

CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, std::size_t& bytes,
                              const std::string& description) {
    return app
        .add_option_function<std::string>(
            name, [&bytes](const std::string& text) { bytes = parse_bytes(text); }, description)
        ->type_name("SIZE")
        ->default_str(format_bytes(bytes));
}

CLI::Option* add_output_option(CLI::App& app, const std::string& name, std::string& path,
                               const std::string& description) {
    return app
        .add_option_function<std::string>(
            name,
            [&path, name](const std::string& text) {
                require_output_file(text, fmt::format("{} {}", name, text));
                path = text;
            },
            description)
        ->type_name("FILE");
}

void add_rank_options(CLI::App& app, RankOptions& options, int most) {
    add_number_option(
        app, "--ranks", options.ranks, 1, most,
        fmt::format("Number of ranks, 1 to {}; if there are more ranks than GPUs, ranks share GPUs",
                    most));
    add_choice(app, "--mode", options.mode,
               "Run each rank as a process, or as a thread of one process")
        ->type_name("process|thread");
}

int run_main(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
    open_standard_descriptors();
    limit_output();
    app.set_version_flag("--version", "symm " SYMM_VERSION);
    add_driver_option(app);
    for (CLI::App* command : app.get_subcommands({})) {
        add_driver_option(*command);
    }
    try {
        try {
            app.parse(argc, argv);
        } catch (const CLI::Success& help) {  // --help and --version end the parsing this way
            std::ostringstream text;
            app.exit(help, text);
            fmt::print("{}", text.str());
            require_written_output();
            return kExitRight;
        }
        turn_multicast_off();
        require_environment();
        emu::read_configuration();  // the variables that require_environment() leaves to it
        const int exit_code = body();
        require_written_output();
        return exit_code == kExitRight && log::told_an_error() ? kExitFailed : exit_code;
    } catch (const CLI::ParseError& error) {
        return fail_usage(app, error);
    } catch (const UsageError& error) {
        return fail_usage(app, error);
    } catch (const std::system_error& error) {
        // If the buffer was full earlier, the error comes from fmt, and its text does not name
        // stdout.
        return fail(kExitFailed, std::ferror(stdout) == 0 ? error_text(error)
                                                          : output_error(error.code().value()));
    } catch (const std::exception& error) {
        return fail(kExitFailed, error_text(error));
    }
}

}  // namespace symm
