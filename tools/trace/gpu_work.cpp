#include "tools/trace/gpu_work.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "tools/trace/arguments.hpp"
#include "tools/trace/cupti.hpp"

namespace symm {
namespace {

/// Kinds of record (CUpti_ActivityKind). CopyRecord fits the structs of both kinds of copy.
constexpr int kCopy = 1;
constexpr int kKernel = 10;
constexpr int kCopyBetweenGpus = 22;
constexpr auto kKinds = std::to_array({kCopy, kKernel, kCopyBetweenGpus});

/// The beginning of CUpti_ActivityKernel4 and its successors.
struct KernelRecord {
    int kind;
    std::uint8_t before[12];
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t completed;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::int32_t shape[6];
    std::int32_t shared_bytes[2];
    std::uint32_t local_bytes[2];
    std::uint32_t correlation;
    std::int64_t grid;
    const char* name;
};

/// The beginning of CUpti_ActivityMemcpy and CUpti_ActivityMemcpyPtoP, of all versions.
struct CopyRecord {
    int kind;
    std::uint8_t before[4];
    std::uint64_t bytes;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
};

struct Collected {
    std::mutex mutex;
    std::vector<GpuWork> work;
};

Collected& collected() {
    static Collected& kept = *new Collected;  // CUPTI's thread may outlive main()
    return kept;
}

void give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    *size = 1 << 20;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
    *most_records = 0;  // as many as fit
}

void take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    const auto next = reinterpret_cast<int (*)(std::uint8_t*, std::size_t, const int**)>(
        trace::cupti_function("cuptiActivityGetNextRecord"));
    Collected& c = collected();
    const std::lock_guard lock(c.mutex);
    for (const int* record = nullptr; next(buffer, valid, &record) == 0;) {
        if (*record == kKernel) {
            const auto& k = *reinterpret_cast<const KernelRecord*>(record);
            c.work.push_back({trace::kernel_text(k.name), k.device, k.stream, k.begin, k.end, 0});
        } else {
            const auto& copy = *reinterpret_cast<const CopyRecord*>(record);
            c.work.push_back({"copy", copy.device, copy.stream, copy.begin, copy.end, copy.bytes});
        }
    }
    std::free(buffer);
}

}  // namespace

std::vector<GpuWork> gpu_work_of(const std::function<void()>& step) {
    static std::once_flag begun;
    std::call_once(begun, [] {
        trace::call_cupti("cuptiActivityRegisterCallbacks", &give_buffer, &take_buffer);
    });
    for (const int kind : kKinds) {
        trace::call_cupti("cuptiActivityEnable", kind);
    }
    step();
    trace::call_cupti("cuptiActivityFlushAll", std::uint32_t{1});
    for (const int kind : kKinds) {
        trace::call_cupti("cuptiActivityDisable", kind);
    }
    Collected& c = collected();
    const std::lock_guard lock(c.mutex);
    std::ranges::sort(c.work, {}, &GpuWork::begin_ns);
    return std::exchange(c.work, {});
}

}  // namespace symm
