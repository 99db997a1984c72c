#include "symm/nccl/exchange.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "symm/nccl/device_scope.hpp"

namespace symm::drop_in {
namespace {

constexpr int kBytes = 0;  // ncclInt8

std::mutex mutex;

void require(Result result, const char* call) {
    if (result != kSuccess && result != kInProgress) {
        throw std::runtime_error(fmt::format("{} returned {}", call, static_cast<int>(result)));
    }
}

}  // namespace

auto& Exchange::kept_of(int device) {
    static auto& all = *new std::map<int, std::vector<Kept>>;
    return all[device];
}

Exchange::Exchange(const Place& place, const std::atomic<bool>& aborted)
    : place_(place), aborted_(aborted) {
    {
        const std::lock_guard lock(mutex);
        if (auto& kept = kept_of(place.device); !kept.empty()) {
            kept_ = kept.back();
            kept.pop_back();
            return;
        }
    }
    const DeviceScope scope(place.device);
    kept_.host = new char[kMostBytes * (kMostRanks + 1)];
    check(cuMemAlloc(&kept_.memory, kMostBytes * (kMostRanks + 1)), "cuMemAlloc()");
    check(cuStreamCreate(&kept_.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate()");
}

Exchange::~Exchange() {
    if (idle_) {
        const std::lock_guard lock(mutex);
        kept_of(place_.device).push_back(kept_);
    }
}

void Exchange::allgather(const void* mine, void* all, std::size_t bytes) {
    if (bytes > kMostBytes || aborted_) {
        throw std::runtime_error(aborted_ ? "the communicator was aborted"
                                          : fmt::format("{} bytes are too many", bytes));
    }
    const DeviceScope scope(place_.device);
    ++count_;
    idle_ = false;
    std::memset(kept_.host, 0, kMostBytes);
    std::memcpy(kept_.host, mine, bytes);
    const CUdeviceptr gathered = kept_.memory + kMostBytes;
    char* const host_gathered = kept_.host + kMostBytes;
    // Not cuMemcpyHtoD, which waits for the default stream, and so for kernels of the program's.
    check(cuMemcpyAsync(kept_.memory, reinterpret_cast<CUdeviceptr>(kept_.host), kMostBytes,
                        kept_.stream),
          "cuMemcpyAsync()");
    require(pnccl::AllGather(reinterpret_cast<const void*>(kept_.memory),
                             reinterpret_cast<void*>(gathered), kMostBytes, kBytes, place_.comm,
                             kept_.stream),
            "ncclAllGather()");
    wait();
    const auto ranks = static_cast<std::size_t>(place_.ranks);
    check(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(host_gathered), gathered, kMostBytes * ranks,
                        kept_.stream),
          "cuMemcpyAsync()");
    wait();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::memcpy(static_cast<char*>(all) + rank * bytes, host_gathered + rank * kMostBytes,
                    bytes);
    }
    idle_ = true;
}

void Exchange::wait() const {
    while (!aborted_) {
        int error = kSuccess;
        require(nccl::CommGetAsyncError(place_.comm, &error), "ncclCommGetAsyncError()");
        require(static_cast<Result>(error), "ncclAllGather()");
        const CUresult state = cuStreamQuery(kept_.stream);
        // A communicator that does not block may still have to queue the call.
        if (state == CUDA_SUCCESS && error == kSuccess) {
            return;
        }
        if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) {
            check(state, "cuStreamQuery()");
        }
        std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    throw std::runtime_error("the communicator was aborted");
}

}  // namespace symm::drop_in
