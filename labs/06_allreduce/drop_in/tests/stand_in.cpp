// A stand-in for NCCL, for emulated GPUs: libnccl.so.2 with the functions that the drop-in and its
// tests need. Each ncclComm is a communicator of symm.h, apart from those of the drop-in. It lacks
// ncclAllReduceConfig, as NCCL 2.28.9 does.

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "labs/06_allreduce/c_api/symm.h"
#include "labs/06_allreduce/drop_in/nccl.hpp"

using symm::drop_in::Result;
using enum symm::drop_in::Result;

struct ncclComm {
    symm_comm* symm = nullptr;
    int rank = 0, ranks = 0, device = 0;
    std::string name;
    int children = 0;
    std::set<ncclWindow_vidmem*> windows = {};
};
struct ncclWindow_vidmem {};
// By its public name, which the dynamic linker may bind to the drop-in: as in NCCL.
extern "C" Result ncclCommWindowDeregister(ncclComm* comm, ncclWindow_vidmem* window);

namespace {

struct UniqueId {
    char internal[128];
};

std::mutex mutex;
std::map<std::string, long>& calls() {
    static auto& kept = *new std::map<std::string, long>;
    return kept;
}

void count(const char* function) {
    const std::lock_guard lock(mutex);
    ++calls()[function];
}

Result result_of(symm_result result) {
    if (result != SYMM_SUCCESS) {
        fmt::print(stderr, "stand-in: {}\n", symm_last_error());
    }
    return result == SYMM_SUCCESS ? kSuccess : kInternalError;
}

using Step = std::pair<ncclComm*, std::function<Result()>>;
thread_local int depth = 0;
thread_local std::vector<Step> steps;

/// A step that waits for the other ranks on the host: at the end of the group, if there is one.
Result run(ncclComm* comm, std::function<Result()> step) {
    if (depth > 0) {
        steps.emplace_back(comm, std::move(step));
        return kSuccess;
    }
    return step();
}

Result run_steps(std::vector<Step> all) {
    std::map<ncclComm*, std::vector<std::function<Result()>>> of;
    for (auto& [comm, step] : all) {
        of[comm].push_back(std::move(step));
    }
    std::atomic<Result> first = kSuccess;
    std::vector<std::jthread> threads;
    for (const auto& one : of) {
        threads.emplace_back([&] {
            for (const auto& step : one.second) {
                if (const Result result = step(); result != kSuccess) {
                    first = result;
                }
            }
        });
    }
    threads.clear();
    return first;
}

Result connect(ncclComm* comm) {
    symm_options options = SYMM_OPTIONS_INIT;
    options.device = comm->device;
    options.max_blocks = 1;
    return result_of(
        symm_comm_create(&comm->symm, comm->rank, comm->ranks, comm->name.c_str(), &options));
}

/// All ranks' pairs of numbers.
std::vector<std::array<int, 2>> gather(ncclComm* comm, std::array<int, 2> mine) {
    std::vector<std::array<int, 2>> all(static_cast<std::size_t>(comm->ranks));
    void* memory = nullptr;
    symm_window_allocate(comm->symm, 4096, &memory);
    char* const out = static_cast<char*>(memory) + 64;
    symm_copy(comm->symm, memory, mine.data(), sizeof mine);
    symm_all_gather(comm->symm, memory, out, 2, SYMM_INT32, symm_comm_stream(comm->symm));
    symm_comm_synchronize(comm->symm, symm_comm_stream(comm->symm));
    symm_copy(comm->symm, all.data(), out, sizeof mine * all.size());
    symm_window_release(comm->symm, memory);
    return all;
}

Result split(ncclComm* comm, int color, int key, ncclComm** made) {
    return run(comm, [=] {
        auto child = new ncclComm{nullptr,
                                  0,
                                  0,
                                  comm->device,
                                  fmt::format("{}/{}.{}", comm->name, comm->children++, color),
                                  0};
        int rank = 0;
        for (const auto& [its_color, its_key] : gather(comm, {color, key})) {
            if (its_color == color) {
                child->ranks += 1;
                child->rank += its_key < key || (its_key == key && rank < comm->rank) ? 1 : 0;
            }
            ++rank;
        }
        *made = child;
        return color < 0 ? (delete std::exchange(*made, nullptr), kSuccess) : connect(child);
    });
}

Result all_reduce(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                  CUstream stream) {
    if (op == 6) {  // as an operation that its communicator does not have
        return kInvalidArgument;
    }
    const int known_type = type > SYMM_BFLOAT16 ? SYMM_INT8 : type;
    const int known_op = op > SYMM_AVG ? SYMM_SUM : op;
    return result_of(symm_all_reduce(comm->symm, in, out, count, static_cast<symm_type>(known_type),
                                     static_cast<symm_op>(known_op), stream));
}

int current_device() {
    CUdevice device = 0;
    return cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : 0;
}

}  // namespace

#define EXPORT(name, parameters, ...)                                                 \
    extern "C" __attribute__((visibility("default"))) Result pnccl##name parameters { \
        count(#name);                                                                 \
        __VA_ARGS__                                                                   \
    }                                                                                 \
    extern "C" __attribute__((visibility("default"), alias("pnccl" #name)))           \
    Result nccl##name parameters;

/// How often a function was called, by any rank of the process.
extern "C" __attribute__((visibility("default"))) long stand_in_calls(const char* function) {
    const std::lock_guard lock(mutex);
    return calls()[function];
}

EXPORT(GetVersion, (int* version), {
    *version = 22809;
    return kSuccess;
})
EXPORT(GetUniqueId, (UniqueId * id), {
    std::random_device random;
    *id = {};
    fmt::format_to_n(id->internal, sizeof id->internal - 1, "stand-in {:x}{:x}", random(),
                     random());
    return kSuccess;
})
EXPORT(CommInitRank, (ncclComm * *comm, int ranks, UniqueId id, int rank), {
    *comm = new ncclComm{nullptr, rank, ranks, current_device(), id.internal, 0};
    return run(*comm, [made = *comm] { return connect(made); });
})
EXPORT(CommInitAll, (ncclComm * *comms, int ranks, const int* devices), {
    UniqueId id;
    pncclGetUniqueId(&id);
    std::vector<Step> all;
    for (int rank = 0; rank < ranks; ++rank) {
        comms[rank] = new ncclComm{
            nullptr, rank, ranks, devices == nullptr ? rank : devices[rank], id.internal, 0};
        all.emplace_back(comms[rank], [made = comms[rank]] { return connect(made); });
    }
    return run_steps(std::move(all));
})
EXPORT(CommSplit, (ncclComm * comm, int color, int key, ncclComm** made, void*),
       { return split(comm, color, key, made); })
EXPORT(CommShrink, (ncclComm * comm, int* excluded, int number, ncclComm** made, void*, int flags),
       {
           int rank = comm->rank;
           std::string name = fmt::format("{}/shrunk{}", comm->name, comm->children++);
           for (int i = 0; i < number; ++i) {
               rank -= excluded[i] < comm->rank ? 1 : 0;
           }
           if (flags != 0) {
               symm_comm_abort(comm->symm);
           }
           *made = new ncclComm{nullptr, rank, comm->ranks - number, comm->device, name, 0};
           return connect(*made);
       })
EXPORT(CommGrow, (ncclComm * comm, int, const void*, int, ncclComm** made, void*),
       { return split(comm, 0, comm->rank, made); })
EXPORT(CommFinalize, (ncclComm*), { return kSuccess; })
EXPORT(CommDestroy, (ncclComm * comm), {
    while (!comm->windows.empty()) {
        if (const Result left = ncclCommWindowDeregister(comm, *comm->windows.begin());
            left != kSuccess) {
            return left;
        }
    }
    const Result result = result_of(symm_comm_destroy(comm->symm));
    delete comm;
    return result;
})
EXPORT(CommAbort, (ncclComm * comm), {
    symm_comm_abort(comm->symm);
    symm_comm_destroy(comm->symm);
    delete comm;
    return kSuccess;
})
EXPORT(CommRevoke, (ncclComm * comm, int), { return result_of(symm_comm_abort(comm->symm)); })
EXPORT(CommSuspend, (ncclComm*, int), { return kSuccess; })
EXPORT(CommResume, (ncclComm*), { return kSuccess; })
EXPORT(CommGetAsyncError, (ncclComm * comm, int* error), {
    *error = symm_comm_gave_up(comm->symm) == SYMM_SUCCESS ? kSuccess : kRemoteError;
    return kSuccess;
})
EXPORT(CommCount, (ncclComm * comm, int* number), {
    *number = comm->ranks;
    return kSuccess;
})
EXPORT(CommUserRank, (ncclComm * comm, int* rank), {
    *rank = comm->rank;
    return kSuccess;
})
EXPORT(CommCuDevice, (ncclComm * comm, int* device), {
    *device = comm->device;
    return kSuccess;
})
EXPORT(MemAlloc, (void** memory, size_t bytes), {
    constexpr size_t kGranularity = size_t{2} << 20;
    const size_t size = (bytes + kGranularity - 1) / kGranularity * kGranularity;
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, current_device()};
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    const bool made = cuMemCreate(&handle, size, &properties, 0) == CUDA_SUCCESS &&
                      cuMemAddressReserve(&address, size, 0, 0, 0) == CUDA_SUCCESS &&
                      cuMemMap(address, size, 0, handle, 0) == CUDA_SUCCESS &&
                      cuMemSetAccess(address, size, &access, 1) == CUDA_SUCCESS &&
                      cuMemRelease(handle) == CUDA_SUCCESS;
    *memory = reinterpret_cast<void*>(address);
    return made ? kSuccess : kUnhandledCudaError;
})
EXPORT(MemFree, (void* memory), {
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    CUdeviceptr base = 0;
    size_t size = 0;
    return cuMemGetAddressRange(&base, &size, address) == CUDA_SUCCESS &&
                   cuMemUnmap(base, size) == CUDA_SUCCESS &&
                   cuMemAddressFree(base, size) == CUDA_SUCCESS
               ? kSuccess
               : kUnhandledCudaError;
})
EXPORT(CommWindowRegister, (ncclComm * comm, void*, size_t, ncclWindow_vidmem** window, int), {
    *window = nullptr;
    return run(comm, [=] {
        comm->windows.insert(*window = new ncclWindow_vidmem);
        return kSuccess;
    });
})
EXPORT(CommWindowDeregister, (ncclComm * comm, ncclWindow_vidmem* window), {
    comm->windows.erase(window);
    delete window;
    return kSuccess;
})
EXPORT(AllReduce,
       (const void* in, void* out, size_t number, int type, int op, ncclComm* comm,
        CUstream stream),
       { return run(comm, [=] { return all_reduce(in, out, number, type, op, comm, stream); }); })
EXPORT(AllGather,
       (const void* in, void* out, size_t number, int type, ncclComm* comm, CUstream stream), {
           return run(comm, [=] {
               return result_of(symm_all_gather(comm->symm, in, out, number,
                                                static_cast<symm_type>(type), stream));
           });
       })
EXPORT(GroupStart, (), {
    ++depth;
    return kSuccess;
})
EXPORT(GroupEnd, (), {
    if (depth == 0) {
        return kInvalidUsage;
    }
    return --depth == 0 ? run_steps(std::exchange(steps, {})) : kSuccess;
})
EXPORT(GroupSimulateEnd, (void*), {
    --depth;
    steps.clear();
    return kSuccess;
})
