#include "labs/01_vmm_alloc/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/bytes.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/drawing.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

namespace {

// Prints a call, makes it, and prints the time and what `make` says of the result. An error leaves as
// the exception it is.
void step(int number, const std::string& call, const std::function<std::string()>& make) {
    fmt::print("{}. {}\n", number, call);
    const auto start = std::chrono::steady_clock::now();
    const std::string result = make();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    fmt::print("   = CUDA_SUCCESS in {:.1f} us{}{}\n", time.count(), result.empty() ? "" : ": ",
               result);
}

constexpr std::size_t kWord = sizeof(std::uint32_t);

// Whether all words are as they were written; the first that is not is printed.
bool holds(const Gpu& gpu, CUdeviceptr base, std::size_t bytes, std::uint32_t seed) {
    const pattern::Result result = pattern::compare(gpu, {base, bytes / kWord, seed});
    if (!result.right()) {
        fmt::print("   WRONG: at {:#x}, {}\n", base, result.describe());
    }
    return result.right();
}

struct Attribute {
    CUdevice_attribute attribute;
    std::string_view name;
    std::string_view meaning;
};

constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "VIRTUAL_MEMORY_MANAGEMENT",
     "cuMemCreate, cuMemMap and the other calls of this lab"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "HANDLE_TYPE_POSIX_FD",
     "handles can be sent to other processes as file descriptors (lab 03)"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, "HANDLE_TYPE_FABRIC",
     "handles can be sent to other machines; even with 1, cuMemCreate may refuse"},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, "HOST_NUMA_ID",
     "the nearest NUMA node of the host, -1 for none (lab 04)"},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "GPU_DIRECT_RDMA_WITH_CUDA_VMM",
     "network cards can reach memory made by cuMemCreate"},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "DMA_BUF",
     "an address range can be exported as a dma-buf (lab 03)"},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "UNIFIED_ADDRESSING",
     "the host and all devices share one address space"},
};

}  // namespace

void tell_attributes(const Device& device) {
    fmt::print("{:<32} {:>5}  {}\n", "CU_DEVICE_ATTRIBUTE_...", "value", "meaning");
    for (const Attribute& row : kAttributes) {
        fmt::print("{:<32} {:>5}  {}\n", row.name, device.attribute(row.attribute), row.meaning);
    }
}

bool tell_allocation(const Gpu& gpu, std::size_t bytes, CUmemAllocationGranularity_flags which) {
    const int device = gpu.ordinal();
    const CUmemAllocationProp properties = device_memory(device);
    const std::string memory_name = fmt::format("device {}", device);
    PhysicalMemory memory;
    AddressRange range;
    Mapping mapping;
    std::size_t size = 0;
    Picture picture;

    step(1,
         fmt::format("cuMemGetAllocationGranularity(pinned memory of {}, {})", memory_name,
                     which == CU_MEM_ALLOC_GRANULARITY_MINIMUM ? "MINIMUM" : "RECOMMENDED"),
         [&] {
             const std::size_t unit = granularity(properties, which);
             size = round_up(bytes, unit);
             return fmt::format("{} bytes. {} become {} granules, {}", unit, bytes, size / unit,
                                format_bytes(size));
         });
    picture.bytes = size;

    step(2,
         fmt::format("cuMemCreate(size={}, pinned memory of {}, POSIX descriptor)", size,
                     memory_name),
         [&] {
             memory = PhysicalMemory::create(properties, size);
             return fmt::format("handle {:#x}", memory.handle());
         });
    picture.memory = memory_name;
    fmt::print("   Memory without an address: nobody can touch it.\n{}", draw(picture));

    step(3, fmt::format("cuMemAddressReserve(size={}, alignment=0)", size), [&] {
        range = AddressRange(size);
        return fmt::format("address {:#x}", range.base());
    });
    picture.base = range.base();
    fmt::print("   Addresses without memory: touching them faults.\n{}", draw(picture));

    step(4,
         fmt::format("cuMemMap(address={:#x}, size={}, offset=0, handle={:#x})", range.base(), size,
                     memory.handle()),
         [&] {
             mapping = Mapping(range.base(), size, memory);
             return std::string();
         });
    picture.mapped = true;
    fmt::print("   The memory has an address. Touching it still faults.\n{}", draw(picture));

    step(5,
         fmt::format("cuMemSetAccess(address={:#x}, size={}, {} reads and writes)", range.base(),
                     size, memory_name),
         [&] {
             give_access(range.base(), size, device);
             return std::string();
         });
    picture.access = memory_name;
    fmt::print("   A buffer.\n{}", draw(picture));

    pattern::fill(gpu, {range.base(), size / kWord, 1});
    const bool right = holds(gpu, range.base(), size, 1);
    fmt::print("   Written and read back from the first byte to the last: {}.\n\n",
               right ? "right" : "WRONG");

    fmt::print("And back, in this order: a range is not freed while memory stands in it.\n");
    step(6, fmt::format("cuMemUnmap(address={:#x}, size={})", range.base(), size), [&] {
        mapping.close();
        return std::string("the addresses are bare again, the handle keeps the memory");
    });
    step(7, fmt::format("cuMemAddressFree(address={:#x}, size={})", range.base(), size), [&] {
        range.close();
        return std::string();
    });
    step(8, fmt::format("cuMemRelease(handle={:#x})", memory.handle()), [&] {
        memory.close();
        return std::string("nothing refers to the memory any more: it is gone");
    });
    return right;
}

bool tell_growth(const Gpu& gpu, std::size_t bytes, std::size_t to) {
    GrowableBuffer buffer(gpu.ordinal(), to);
    const CUdeviceptr base = buffer.base();
    std::size_t written = 0;
    bool right = true;
    fmt::print("A buffer that grows in place: {} reserved at {:#x}\n",
               format_bytes(buffer.capacity()), base);
    const auto show = [&](const char* what) {
        std::vector<std::size_t> pieces;
        for (const GrowableBuffer::Piece& piece : buffer.pieces()) {
            pieces.push_back(piece.mapping.size());
        }
        right = right && buffer.base() == base && holds(gpu, base, buffer.size(), 2);
        fmt::print("{} {} {:>8} at {:#x}\n", draw_pieces(pieces, buffer.capacity()), what,
                   format_bytes(buffer.size()), buffer.base());
    };
    const auto resize = [&](std::size_t to_bytes) {
        buffer.resize(to_bytes);
        const std::size_t kept = std::min(written, buffer.size());
        pattern::fill(gpu, {base + kept, (buffer.size() - kept) / kWord, 2, kept / kWord});
        written = buffer.size();
    };

    resize(bytes);
    show("starts with");
    while (buffer.size() < to) {
        resize(std::min(to, 2 * buffer.size()));
        show("grew to    ");
    }
    while (buffer.pieces().size() > 1) {
        resize(buffer.size() - buffer.pieces().back().mapping.size());
        show("shrank to  ");
    }
    fmt::print("The pointer stayed and every piece held what was written to it: {}.\n",
               right ? "right" : "WRONG");
    return right;
}

bool tell_contexts(const Gpu& gpu) {
    std::vector<std::uint32_t> data(16384);
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = pattern::word(3, i);
    }
    std::vector<std::uint32_t> seen(data.size());
    const std::size_t bytes = data.size() * kWord;
    {
        const OwnContext own(gpu.ordinal());
        const CurrentContext current(own.get());
        CUdeviceptr memory = 0;
        cu_check(cuMemAlloc(&memory, bytes), "cuMemAlloc(size={})", bytes);
        copy_to_device(memory, data.data(), bytes);
        copy_to_host(seen.data(), memory, bytes);
        fmt::print(
            "Contexts: primary {}, a second one by cuCtxCreate {}. In the second, {} bytes of\n"
            "cuMemAlloc memory were written and read back: {}. cuCtxDestroy frees them too.\n",
            fmt::ptr(gpu.device().context()), fmt::ptr(own.get()), bytes,
            seen == data ? "right" : "WRONG");
    }
    CUcontext after = nullptr;
    cu_check(cuCtxGetCurrent(&after), "cuCtxGetCurrent()");
    return seen == data && after == gpu.device().context();
}

}  // namespace symm
