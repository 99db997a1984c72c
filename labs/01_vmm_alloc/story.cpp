#include "labs/01_vmm_alloc/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/sys/bytes.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);

// A step: the constructor prints the call before it is made, and done() prints the result. A call
// that fails throws in between.
class Step {
public:
    explicit Step(const std::string& call) {
        fmt::print("{}\n", call);
        start_ = std::chrono::steady_clock::now();
    }
    template <class... Arguments>
    void done(fmt::format_string<Arguments...> result, Arguments&&... arguments) const {
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start_;
        fmt::print("   = CUDA_SUCCESS in {:.1f} us{}\n", time.count(),
                   fmt::format(result, std::forward<Arguments>(arguments)...));
    }

private:
    std::chrono::steady_clock::time_point start_;
};

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

// The reserved addresses as a bar of 56 columns: a letter for each mapped piece, a dot where
// nothing is mapped.
std::string bar(const GrowableBuffer& buffer) {
    std::string columns(56, '.');
    char letter = 'A';
    for (const Mapping& piece : buffer.pieces()) {
        const auto column = [&](CUdeviceptr at) {
            const double share =
                static_cast<double>(at - buffer.base()) / static_cast<double>(buffer.capacity());
            return columns.begin() +
                   static_cast<std::ptrdiff_t>(share * static_cast<double>(columns.size()));
        };
        std::fill(column(piece.address()), column(piece.address() + piece.size()), letter++);
    }
    return columns;
}

}  // namespace

void tell_attributes(int device) {
    fmt::print("{:<32} {:>5}  {}\n", "CU_DEVICE_ATTRIBUTE_...", "value", "meaning");
    const auto tell = [&](CUdevice_attribute attribute, const char* name, const char* meaning) {
        fmt::print("{:<32} {:>5}  {}\n", name, device_attribute(device, attribute), meaning);
    };
    tell(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "VIRTUAL_MEMORY_MANAGEMENT",
         "cuMemCreate, cuMemMap and the other calls of this lab");
    tell(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "HANDLE_TYPE_POSIX_FD",
         "handles as file descriptors, for other processes (lab 03)");
    tell(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, "HANDLE_TYPE_FABRIC",
         "handles for other machines; cuMemCreate may still refuse");
    tell(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, "HOST_NUMA_ID",
         "the nearest NUMA node of the host, -1 for none (lab 04)");
    tell(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
         "GPU_DIRECT_RDMA_WITH_CUDA_VMM", "network cards can reach memory made by cuMemCreate");
    tell(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "DMA_BUF",
         "an address range can be exported as a dma-buf (lab 03)");
    tell(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "UNIFIED_ADDRESSING",
         "the host and all devices share one address space");
}

bool tell_allocation(const Gpu& gpu, std::size_t bytes) {
    const int device = gpu.ordinal();
    const std::string place = fmt::format("device {}", device);
    const CUmemAllocationProp properties = device_memory(device);

    const Step ask(
        fmt::format("1. cuMemGetAllocationGranularity(pinned memory of {}, RECOMMENDED)", place));
    const std::size_t unit = granularity(properties);
    const std::size_t size = round_up(bytes, unit);
    ask.done(": {} bytes. {} become {} granules, {}", unit, bytes, size / unit, format_bytes(size));

    const Step create(
        fmt::format("2. cuMemCreate(size={}, pinned memory of {}, POSIX descriptor)", size, place));
    PhysicalMemory memory = PhysicalMemory::create(properties, size);
    create.done(": handle {:#x}", memory.handle());
    fmt::print("   Memory without an address: it cannot be used yet.\n");

    const Step reserve(fmt::format("3. cuMemAddressReserve(size={}, alignment=0)", size));
    AddressRange range(size);
    reserve.done(": address {:#x}", range.base());
    fmt::print("   Addresses without memory: a load or store there faults.\n");
    draw(range, "", "no device", place);

    const Step map(fmt::format("4. cuMemMap(address={:#x}, size={}, offset=0, handle={:#x})",
                               range.base(), size, memory.handle()));
    Mapping mapping(range.base(), size, memory);
    map.done("");
    fmt::print("   The memory has an address. A load or store there still faults.\n");
    draw(range, "------>", "no device", place);

    const Step open(fmt::format("5. cuMemSetAccess(address={:#x}, size={}, {} reads and writes)",
                                range.base(), size, place));
    give_access(range.base(), size, device);
    open.done("");
    fmt::print("   A buffer.\n");
    draw(range, "------>", place, place);

    test_pattern::fill(gpu, {range.base(), size / kWord, 1});
    const bool right = holds(gpu, range.base(), size, 1);
    fmt::print("   Written and read back from the first byte to the last: {}.\n\n",
               right ? "right" : "WRONG");

    fmt::print(
        "And back, in this order: addresses cannot be freed while memory is mapped there.\n");
    const Step unmap(fmt::format("6. cuMemUnmap(address={:#x}, size={})", range.base(), size));
    mapping.close();
    unmap.done(": the addresses have no memory any more, the handle keeps the memory");

    const Step free(fmt::format("7. cuMemAddressFree(address={:#x}, size={})", range.base(), size));
    range.close();
    free.done("");

    const Step release(fmt::format("8. cuMemRelease(handle={:#x})", memory.handle()));
    memory.close();
    release.done(": nothing refers to the memory any more, so it is freed");
    return right;
}

bool tell_growth(const Gpu& gpu, std::size_t bytes, std::size_t to) {
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

bool tell_contexts(const Gpu& gpu) {
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

}  // namespace symm
