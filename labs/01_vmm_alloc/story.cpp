#include "labs/01_vmm_alloc/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cli/bytes.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/drawing.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/01_vmm_alloc/words.hpp"

namespace symm {

namespace {

// Prints a call, makes it, prints what came of it. A failure leaves as the exception it is.
void step(int number, const std::string& call, const std::function<std::string()>& make) {
    fmt::print("{}. {}\n", number, call);
    const auto start = std::chrono::steady_clock::now();
    const std::string result = make();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    fmt::print("   = CUDA_SUCCESS in {:.1f} us{}{}\n", time.count(), result.empty() ? "" : ": ",
               result);
}

// Whether every word is as it was written; the first that is not is printed.
bool holds(CUdeviceptr base, std::size_t bytes, std::uint32_t seed) {
    const std::optional<WrongWord> wrong = find_wrong_word(base, bytes, seed);
    if (wrong) {
        fmt::print("   WRONG: {:#x} holds {:#x}, written was {:#x}\n", base + wrong->offset,
                   wrong->seen, wrong->expected);
    }
    return !wrong;
}

}  // namespace

bool tell_allocation(int device, std::size_t bytes, CUmemAllocationGranularity_flags which) {
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
             CUmemAccessDesc access{};
             access.location = properties.location;
             access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
             cu_check(cuMemSetAccess(range.base(), size, &access, 1),
                      "cuMemSetAccess(address={:#x}, size={}, device={})", range.base(), size,
                      device);
             return std::string();
         });
    picture.access = memory_name;
    fmt::print("   A buffer.\n{}", draw(picture));

    write_words(range.base(), 0, size, 1);
    const bool right = holds(range.base(), size, 1);
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

bool tell_growth(int device, std::size_t bytes, std::size_t to) {
    GrowableBuffer buffer(device, to);
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
        right = right && buffer.base() == base && holds(base, buffer.size(), 2);
        fmt::print("{} {} {:>8} at {:#x}\n", draw_pieces(pieces, buffer.capacity()), what,
                   format_bytes(buffer.size()), buffer.base());
    };
    const auto resize = [&](std::size_t to_bytes) {
        buffer.resize(to_bytes);
        write_words(base, std::min(written, buffer.size()), buffer.size(), 2);  // what is new
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

bool tell_contexts(int device) {
    CUcontext before = nullptr;
    cu_check(cuCtxGetCurrent(&before), "cuCtxGetCurrent()");
    bool right = true;
    {
        const OwnContext own(device);
        const CurrentContext current(own.get());
        CUdeviceptr memory = 0;
        constexpr std::size_t kBytes = 65536;
        cu_check(cuMemAlloc(&memory, kBytes), "cuMemAlloc(size={})", kBytes);
        write_words(memory, 0, kBytes, 3);
        right = holds(memory, kBytes, 3);
        fmt::print(
            "Contexts: primary {}, a second by cuCtxCreate {}; {} bytes of cuMemAlloc\n"
            "memory, written and read in the second: {}. cuCtxDestroy takes them with it.\n",
            fmt::ptr(before), fmt::ptr(own.get()), kBytes, right ? "right" : "WRONG");
    }
    CUcontext after = nullptr;
    cu_check(cuCtxGetCurrent(&after), "cuCtxGetCurrent()");
    return right && after == before;
}

}  // namespace symm
