// Lab 01: the eight steps of one allocation, shown call by call. Then a buffer that grows, and a
// second context.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "common/cli/cli.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"

namespace {

using namespace symm;

constexpr std::size_t kWord = sizeof(std::uint32_t);

struct Options {
    std::size_t size = std::size_t{64} << 20;
    int device = 0;
    std::size_t grow = 0;
};

// Prints the step, makes its call, then prints the time. The caller prints the result. If the call
// fails, it throws in between.
template <class Call>
void step(const std::string& text, const Call& call) {
    fmt::print("{}\n", text);
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    fmt::print("   = CUDA_SUCCESS in {:.1f} us", time.count());
}

// The addresses on the left, the memory on the right; `arrow` is the mapping between them.
void draw(const AddressRange& range, const char* arrow, const std::string& users,
          const std::string& place) {
    const std::string size = format_bytes(range.size());
    fmt::print(
        "                       addresses                          memory of {5}\n"
        "    {0:>#18x} +------------------------+         +------------------------+\n"
        "                       | {2:<22} | {3:<7} | {4:<22} |\n"
        "                       | open to {6:<14} |         |                        |\n"
        "    {1:>#18x} +------------------------+         +------------------------+\n",
        range.base(), range.end(), size + " reserved", arrow, size + " created", place, users);
}

// Whether all words are as they were written. Prints the first that is wrong.
bool holds(const Gpu& gpu, CUdeviceptr base, std::size_t bytes, std::uint32_t seed) {
    const test_pattern::Result result = test_pattern::compare(gpu, {base, bytes / kWord, seed});
    if (!result.right()) {
        fmt::print("   WRONG: at {:#x}, {}\n", base, result.describe());
    }
    return result.right();
}

void show_attributes(int device) {
    struct Attribute {
        CUdevice_attribute attribute;
        const char* name;
        const char* meaning;
    };
    constexpr Attribute kAttributes[] = {
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "VIRTUAL_MEMORY_MANAGEMENT",
         "cuMemCreate, cuMemMap and the other calls of this lab"},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "HANDLE_TYPE_POSIX_FD",
         "handles as file descriptors, for other processes (lab 03)"},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, "HANDLE_TYPE_FABRIC",
         "handles for other machines; cuMemCreate may still refuse"},
        {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, "HOST_NUMA_ID",
         "the nearest NUMA node of the host, -1 for none (lab 04)"},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
         "GPU_DIRECT_RDMA_WITH_CUDA_VMM", "network cards can reach memory made by cuMemCreate"},
        {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "DMA_BUF",
         "an address range can be exported as a dma-buf (lab 03)"},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "UNIFIED_ADDRESSING",
         "the host and all devices share one address space"},
    };
    fmt::print("{:<32} {:>5}  {}\n", "CU_DEVICE_ATTRIBUTE_...", "value", "meaning");
    for (const auto& [attribute, name, meaning] : kAttributes) {
        fmt::print("{:<32} {:>5}  {}\n", name, device_attribute(device, attribute), meaning);
    }
}

// The eight steps. After step 5 a kernel writes every word and another one compares it. Returns
// whether all words were right.
bool show_allocation(const Gpu& gpu, std::size_t bytes) {
    const int device = gpu.ordinal();
    const std::string place = fmt::format("device {}", device);
    const CUmemAllocationProp properties = device_memory(device);
    std::size_t unit = 0;
    PhysicalMemory memory;
    AddressRange range;
    Mapping mapping;

    step(fmt::format("1. cuMemGetAllocationGranularity(pinned memory of {}, RECOMMENDED)", place),
         [&] { unit = granularity(properties); });
    const std::size_t size = round_up(bytes, unit);
    fmt::print(": {} bytes. {} become {} granules, {}\n", unit, bytes, size / unit,
               format_bytes(size));

    step(fmt::format("2. cuMemCreate(size={}, pinned memory of {}, POSIX descriptor)", size, place),
         [&] { memory = PhysicalMemory::create(properties, size); });
    fmt::print(": handle {:#x}\n   Memory without an address: it cannot be used yet.\n",
               memory.handle());

    step(fmt::format("3. cuMemAddressReserve(size={}, alignment=0)", size),
         [&] { range = AddressRange(size); });
    fmt::print(": address {:#x}\n   Addresses without memory: a load or store there faults.\n",
               range.base());
    draw(range, "", "no device", place);

    step(fmt::format("4. cuMemMap(address={:#x}, size={}, offset=0, handle={:#x})", range.base(),
                     size, memory.handle()),
         [&] { mapping = Mapping(range.base(), size, memory); });
    fmt::print("\n   The memory has an address. A load or store there still faults.\n");
    draw(range, "------>", "no device", place);

    step(fmt::format("5. cuMemSetAccess(address={:#x}, size={}, {} reads and writes)", range.base(),
                     size, place),
         [&] { give_access(range.base(), size, device); });
    fmt::print("\n   A buffer.\n");
    draw(range, "------>", place, place);

    test_pattern::fill(gpu, {range.base(), size / kWord, 1});
    const bool right = holds(gpu, range.base(), size, 1);
    fmt::print(
        "   Written and read back from the first byte to the last: {}.\n\n"
        "And back, in this order: addresses cannot be freed while memory is mapped there.\n",
        right ? "right" : "WRONG");

    step(fmt::format("6. cuMemUnmap(address={:#x}, size={})", range.base(), size),
         [&] { mapping.close(); });
    fmt::print(": the addresses have no memory any more, the handle keeps the memory\n");

    step(fmt::format("7. cuMemAddressFree(address={:#x}, size={})", range.base(), size),
         [&] { range.close(); });
    fmt::print("\n");

    step(fmt::format("8. cuMemRelease(handle={:#x})", memory.handle()), [&] { memory.close(); });
    fmt::print(": nothing refers to the memory any more, so it is freed\n");
    return right;
}

// The reserved addresses as a bar of 56 columns: a letter for each mapped piece, a dot where
// nothing is mapped.
std::string bar(const GrowableBuffer& buffer) {
    std::string columns(56, '.');
    char letter = 'A';
    const auto column = [&](CUdeviceptr at) {
        return columns.begin() + static_cast<std::ptrdiff_t>((at - buffer.base()) * columns.size() /
                                                             buffer.capacity());
    };
    for (const Mapping& piece : buffer.pieces()) {
        std::fill(column(piece.address()), column(piece.address() + piece.size()), letter++);
    }
    return columns;
}

// Grows a buffer of `bytes` in place to `to` bytes and shrinks it again. Returns whether its
// address never changed and every piece held what was written to it.
bool show_growth(const Gpu& gpu, std::size_t bytes, std::size_t to) {
    GrowableBuffer buffer(gpu.ordinal(), to);
    const CUdeviceptr base = buffer.base();
    bool right = true;
    fmt::print("A buffer that grows in place: {} reserved at {:#x}\n",
               format_bytes(buffer.capacity()), base);
    const auto resize = [&](const char* what, std::size_t wanted) {
        const std::size_t before = buffer.size();
        buffer.resize(wanted);
        const std::size_t kept = std::min(before, buffer.size());
        test_pattern::fill(gpu, {base + kept, (buffer.size() - kept) / kWord, 2, kept / kWord});
        right = right && buffer.base() == base && holds(gpu, base, buffer.size(), 2);
        fmt::print("[{}] {:<11} {:>8} at {:#x}\n", bar(buffer), what, format_bytes(buffer.size()),
                   buffer.base());
    };

    resize("starts with", bytes);
    while (buffer.size() < to) {
        resize("grew to", std::min(to, 2 * buffer.size()));
    }
    while (buffer.pieces().size() > 1) {
        resize("shrank to", buffer.size() - buffer.pieces().back().size());
    }
    fmt::print("The pointer stayed the same and every piece kept its data: {}.\n",
               right ? "right" : "WRONG");
    return right;
}

// Uses memory in a second context besides the primary one. Returns whether it held what was written
// and the primary context is current again.
bool show_contexts(const Gpu& gpu) {
    const std::vector<std::uint32_t> data(16384, 0x5EED);
    std::vector<std::uint32_t> seen(data.size());
    const std::size_t bytes = data.size() * kWord;
    {
        const OwnContext own(gpu.ordinal());
        CUdeviceptr memory = 0;
        cu_check(cuMemAlloc(&memory, bytes), "cuMemAlloc(size={})", bytes);
        copy_to_device(memory, data.data(), bytes);
        copy_to_host(seen.data(), memory, bytes);
        fmt::print(
            "Contexts: primary {}, a second one from cuCtxCreate {}. In the second,\n"
            "{} bytes of cuMemAlloc memory were written and read back: {}. cuCtxDestroy frees\n"
            "them too.\n",
            fmt::ptr(gpu.device().context()), fmt::ptr(own.get()), bytes,
            seen == data ? "right" : "WRONG");
    }
    CUcontext after = nullptr;
    cu_check(cuCtxGetCurrent(&after), "cuCtxGetCurrent()");
    return seen == data && after == gpu.device().context();
}

int run(const Options& options) {
    if (options.size == 0) {
        throw UsageError("--size must be at least 1 byte, for example --size 64M");
    }
    if (options.grow != 0 && options.grow < options.size) {
        throw UsageError("--grow must be at least --size, {}", format_bytes(options.size));
    }
    fmt::print("{}\n", describe_driver());
    if (is_emulated()) {
        fmt::print("Times below are the emulated driver's: they say nothing about a GPU.\n");
    }
    const int devices = device_count();
    if (options.device >= devices) {
        throw UsageError("there is no device {}: use --device 0 to {}", options.device,
                         devices - 1);
    }
    const Gpu gpu(options.device);
    fmt::print("device {}: {}, {} of memory\n\n", options.device, gpu.device().name(),
               format_bytes(gpu.device().total_memory()));
    show_attributes(options.device);
    fmt::print("\n");
    bool right = show_allocation(gpu, options.size);
    if (options.grow != 0) {
        fmt::print("\n");
        right = show_growth(gpu, options.size, options.grow) && right;
    }
    fmt::print("\n");
    right = show_contexts(gpu) && right;
    fmt::print("\n{}\n", right ? "All checks passed." : "WRONG: see above.");
    return right ? kExitRight : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"The eight steps of one allocation: from cuMemCreate to a buffer, and back.",
                 "01_vmm_alloc"};
    Options options;
    add_bytes_option(app, "--size", options.size, "Bytes to allocate");
    add_number_option(app, "--device", options.device, 0, std::numeric_limits<int>::max(),
                      "Device to allocate on");
    add_bytes_option(app, "--grow", options.grow,
                     "Also show a buffer that grows in place from --size to this many bytes");
    return run_main(app, argc, argv, [&] { return run(options); });
}
