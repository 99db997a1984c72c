// Lab 01: the eight steps of one allocation, shown call by call.

#include <fmt/format.h>

#include <limits>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "labs/01_vmm_alloc/story.hpp"

namespace {

struct Options {
    std::size_t size = std::size_t{64} << 20;
    int device = 0;
    std::size_t grow = 0;
};

int run(const Options& options) {
    using namespace symm;
    if (options.size == 0) {
        throw UsageError("--size must be at least 1 byte, for example --size 64M");
    }
    if (options.grow != 0 && options.grow < options.size) {
        throw UsageError(
            fmt::format("--grow must be at least --size, {}", format_bytes(options.size)));
    }
    fmt::print("{}\n", describe_driver());
    if (is_emulated()) {
        fmt::print("Times below are the emulated driver's: they say nothing about a GPU.\n");
    }
    const int devices = device_count();
    if (options.device >= devices) {
        throw UsageError(fmt::format("there is no device {}: use --device 0 to {}", options.device,
                                     devices - 1));
    }
    const Gpu gpu(options.device);
    fmt::print("device {}: {}, {} of memory\n\n", options.device, gpu.device().name(),
               format_bytes(gpu.device().total_memory()));
    tell_attributes(options.device);
    fmt::print("\n");
    bool right = tell_allocation(gpu, options.size);
    if (options.grow != 0) {
        fmt::print("\n");
        right = tell_growth(gpu, options.size, options.grow) && right;
    }
    fmt::print("\n");
    right = tell_contexts(gpu) && right;
    fmt::print("\n{}\n", right ? "All checks passed." : "WRONG: see above.");
    return right ? kExitRight : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"The eight steps of one allocation: from cuMemCreate to a buffer, and back.",
                 "01_vmm_alloc"};
    Options options;
    symm::add_bytes_option(app, "--size", options.size, "Bytes to allocate");
    symm::add_number_option(app, "--device", options.device, 0, std::numeric_limits<int>::max(),
                            "Device to allocate on");
    symm::add_bytes_option(app, "--grow", options.grow,
                           "Also show a buffer that grows in place from --size to this many bytes");
    return symm::run_main(app, argc, argv, [&] { return run(options); });
}
