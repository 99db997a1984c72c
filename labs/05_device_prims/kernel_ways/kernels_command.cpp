#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "common/cuda/driver.hpp"
#include "common/sys/table.hpp"
#include "labs/05_device_prims/commands.hpp"
#include "labs/05_device_prims/kernel_ways/kernel_ways.hpp"

namespace symm {
namespace {

struct KernelsOptions {
    std::uint32_t count = 100'003;
    std::uint32_t launches = 100;
};

template <class Work>
double microseconds_of(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

class Walk {
public:
    explicit Walk(const KernelsOptions& options)
        : options_(options), gpu_(0), trial_(gpu_, options.count) {}

    /// Finds the kernel twice, launches it, and adds a row.
    template <class Find>
    void way(const std::string& name, const Find& find, std::uint32_t index = 0) {
        CUfunction function = nullptr;
        const double found = microseconds_of([&] { function = find(); });
        const double found_again = microseconds_of([&] { function = find(); });
        const double first = launches(function, index, 1);
        const double later = launches(function, index, options_.launches);
        table_.push_back({name, fmt::format("{} right", options_.count), time(found),
                          time(found_again), time(first), time(later / options_.launches)});
    }

    std::string text() const { return table_text(table_); }

private:
    double launches(CUfunction function, std::uint32_t index, std::uint32_t times) const {
        trial_.poison();
        const double microseconds = microseconds_of([&] {
            for (std::uint32_t i = 0; i < times; ++i) {
                trial_.run(function, index);
            }
        });
        trial_.check(index);
        return microseconds;
    }

    // Emulated times would show how fast this machine wakes threads.
    static std::string time(double microseconds) {
        return is_emulated() ? "(emulated)" : fmt::format("{:.1f} us", microseconds);
    }

    const KernelsOptions& options_;
    Gpu gpu_;
    KernelTrial trial_;
    TableRows table_{{"way", "checked", "find", "find again", "first launch", "launch"}};
};

int run_kernels(const KernelsOptions& options) {
    fmt::print("{}\n\n", describe_driver());
    add_kernel_twins();
    Walk walk(options);
    PtxLibrary library;
    walk.way(fmt::format("PTX: {}", kOperationNames[0]), [&] {
        if (!library) {
            library = PtxLibrary(kKernelPtx);
        }
        return library.function(kKernelName);
    });
    walk.way(fmt::format("symbol: {}", kOperationNames[0]), scale_and_shift_by_symbol);
    for (std::uint32_t index = 0; index < kOperationCount; ++index) {
        walk.way(fmt::format("table, {}: {}", index, kOperationNames[index]), kernel_with_table,
                 index);
    }
    fmt::print("{}", walk.text());
    return kExitRight;
}

}  // namespace

std::function<int()> add_kernels_command(CLI::App& app) {
    const auto given = std::make_shared<KernelsOptions>();
    KernelsOptions& options = *given;
    CLI::App& command = *app.add_subcommand(
        "kernels", "Three ways to a kernel: from PTX, by its symbol, through a table of functions");
    add_number_option(command, "--count", options.count, 0U, 1U << 28, "Numbers to compute");
    add_number_option(command, "--launches", options.launches, 1U, 1'000'000U,
                      "Launches to time, after the first");
    command.footer(
        "PTX: the driver compiles a text in the program, and the kernel is found by its name.\n"
        "Symbol: the kernel is linked into the program and found by its address. Table: one\n"
        "kernel, which calls the function at an index that the host chooses.\n"
        "What to look for: the columns 'find' and 'first launch'. PTX is compiled in one of them\n"
        "(the driver keeps the result in ~/.nv/ComputeCache: compare a second run). Later "
        "launches\n"
        "do not depend on how the kernel was found.");
    return [given] { return run_kernels(*given); };
}

}  // namespace symm
