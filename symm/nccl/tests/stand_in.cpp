// A stand-in for NCCL, for emulated GPUs: libnccl.so.2 with the functions that the drop-in and its
// tests need. Each ncclComm is a communicator of symm.h, apart from those of the drop-in. It lacks
// ncclAllReduceConfig, as NCCL 2.28.9 does.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "symm/c/symm.h"
#include "symm/nccl/nccl.hpp"

using symm::drop_in::Result;
using enum symm::drop_in::Result;

struct ncclComm {
    symm_comm* symm = nullptr;
    int rank = 0, ranks = 0, device = 0;
    std::string name;
    int children = 0;
    std::set<ncclWindow_vidmem*> windows = {};
    std::atomic<Result> state = kSuccess;
    std::jthread late = {};  ///< Makes the calls that returned kInProgress.
    std::atomic<bool> aborted = false;
    bool connected = false;  ///< By its first AllGather.
    std::mutex inside = {};  ///< Held in a call that may wait for other ranks on the host.
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

/// Communicators that do not exist any more. A use of one ends the program.
std::set<const void*> freed;

void free_comm(ncclComm* comm) {
    const std::lock_guard lock(mutex);
    freed.insert(comm);
    delete comm;
}

void require_alive(ncclComm* comm) {
    const std::lock_guard lock(mutex);
    if (freed.contains(comm) || comm->aborted) {
        fmt::print(stderr, "stand-in: a communicator is used after its end\n");
        std::abort();
    }
}

Result result_of(symm_result result) {
    if (result != SYMM_SUCCESS) {
        fmt::print(stderr, "stand-in: {}\n", symm_last_error());
    }
    return result == SYMM_SUCCESS ? kSuccess : kInternalError;
}

enum { kAtOnce, kLater, kNever };
std::atomic<int> delay = kAtOnce;

/// As a communicator that does not block.
Result make_later(ncclComm* comm, std::function<Result()> step) {
    comm->state = kInProgress;
    comm->late = std::jthread([comm, step = std::move(step)] {
        do {
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
        } while (delay == kNever && !comm->aborted);
        comm->state = comm->aborted ? kInternalError : step();
    });
    return kInProgress;
}

struct Step {
    ncclComm* comm;
    std::function<Result()> make;
    CUstream stream = nullptr;
    enum { kOnHost, kCollective, kSendOrReceive } kind = kOnHost;  ///< The last have no stream.
};
thread_local int depth = 0;
thread_local std::vector<Step> steps;
thread_local Result refused = kSuccess;  ///< The first refusal in the group: then it does nothing.
std::atomic<const char*> last_error = "";

Result refuse(Result why) {
    last_error = "stand-in: it refuses a call";
    refused = refused == kSuccess && depth > 0 ? why : refused;
    return why;
}

cuuint64_t capture_of(CUstream stream) {
    auto status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
#if CUDA_VERSION >= 13000
    cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr);
#else
    cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr);
#endif
    return status == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : id;
}

/// At the end of the group, if there is one.
Result run(Step step) {
    if (depth == 0) {
        return step.comm->state != kSuccess ? kInvalidUsage
               : delay == kAtOnce           ? step.make()
                                            : make_later(step.comm, std::move(step.make));
    }
    for (const Step& other : steps) {  // all captured by the same graph, or none
        if (other.comm == step.comm && other.kind != Step::kOnHost && step.kind != Step::kOnHost &&
            capture_of(other.stream) != capture_of(step.stream)) {
            return refuse(kInvalidUsage);
        }
    }
    steps.push_back(std::move(step));
    return kSuccess;
}

/// Makes all streams wait for what any of them has to do so far.
void join(const std::vector<CUstream>& streams) {
    for (int way = 0; way < 2; ++way) {
        for (std::size_t i = 1; i < streams.size(); ++i) {
            CUevent event = nullptr;
            cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
            cuEventRecord(event, way == 0 ? streams[i] : streams[0]);
            cuStreamWaitEvent(way == 0 ? streams[0] : streams[i], event, 0);
            cuEventDestroy(event);
        }
    }
}

/// A communicator's part of a group is one operation, which all of its streams wait for, and which
/// waits for all of them.
Result make_operation(const std::vector<Step>& steps) {
    CUcontext context = nullptr;
    const int device = steps.front().comm->device;
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxPushCurrent(context);
    std::vector<CUstream> streams;
    for (const Step& step : steps) {
        if (step.kind != Step::kOnHost && !std::ranges::count(streams, step.stream)) {
            streams.push_back(step.stream);
        }
    }
    join(streams);
    Result first = kSuccess;
    for (const Step& step : steps) {
        const Result one = step.make();
        first = first == kSuccess ? one : first;
    }
    join(streams);
    cuCtxPopCurrent(&context);
    cuDevicePrimaryCtxRelease(device);
    return first;
}

/// The operations of one rank are made in the program's order, which is the same on all ranks, and
/// in this thread if it has one rank only: CU_STREAM_PER_THREAD is the thread's own.
Result run_steps(std::vector<Step> all) {
    std::vector<ncclComm*> order;
    std::map<ncclComm*, std::vector<Step>> of;
    for (const Step& step : all) {
        if (!of.contains(step.comm)) {
            order.push_back(step.comm);
        }
        of[step.comm].push_back(step);
    }
    std::atomic<Result> result = kSuccess;
    std::map<std::pair<int, int>, std::vector<std::vector<Step>>> lanes;  // by device and rank
    for (ncclComm* comm : order) {
        std::vector<Step>& steps = of[comm];
        std::ranges::stable_sort(steps, {}, &Step::kind);
        if (delay != kAtOnce) {
            result = make_later(comm, [steps] { return make_operation(steps); });
        } else {
            lanes[{comm->device, comm->rank}].push_back(std::move(steps));
        }
    }
    std::vector<std::jthread> threads;
    for (const auto& [place, operations] : lanes) {
        const auto run = [&result, &operations = operations] {
            for (const std::vector<Step>& steps : operations) {
                if (const Result one = make_operation(steps); one != kSuccess) {
                    result = one;
                }
            }
        };
        lanes.size() == 1 ? run() : static_cast<void>(threads.emplace_back(run));
    }
    threads.clear();
    return result;
}

bool have_peer_access() {
    int can = 0;
    return cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS && can == 1;
}

/// Without peer access, all communicators are on device 0, and the bytes are copied there.
Result connect(ncclComm* comm) {
    {
        const std::lock_guard lock(mutex);
        freed.erase(comm);  // one that had this address
    }
    symm_options options = SYMM_OPTIONS_INIT;
    options.device = have_peer_access() ? comm->device : 0;
    options.max_blocks = 1;
    return result_of(
        symm_comm_create(&comm->symm, comm->rank, comm->ranks, comm->name.c_str(), &options));
}

/// Makes a call with copies of the buffers, and waits for it. Emulated GPUs' memory is the host's.
symm_result call_with_copies(ncclComm* comm, const void* in, size_t in_bytes, void* out,
                             size_t out_bytes,
                             const std::function<symm_result(void*, void*, CUstream)>& call) {
    const CUstream stream = symm_comm_stream(comm->symm);
    void* copy = nullptr;
    symm_window_allocate(comm->symm, in_bytes + out_bytes + 64, &copy);
    char* const out_copy = static_cast<char*>(copy) + (in_bytes + 63) / 64 * 64;
    symm_copy(comm->symm, copy, in, in_bytes);
    const symm_result called = call(copy, out_copy, stream);
    const symm_result waited = symm_comm_synchronize(comm->symm, stream);
    symm_copy(comm->symm, out, out_copy, out_bytes);
    symm_window_release(comm->symm, copy);
    return called != SYMM_SUCCESS ? called : waited;
}

Result call(ncclComm* comm, const void* in, size_t in_bytes, void* out, size_t out_bytes,
            CUstream stream, const std::function<symm_result(const void*, void*, CUstream)>& call) {
    if (have_peer_access()) {
        return result_of(call(in, out, stream));
    }
    cuStreamSynchronize(stream);
    return result_of(call_with_copies(comm, in, in_bytes, out, out_bytes, call));
}

/// All ranks' pairs of numbers.
std::vector<std::array<int, 2>> gather(ncclComm* comm, std::array<int, 2> mine) {
    std::vector<std::array<int, 2>> all(static_cast<std::size_t>(comm->ranks));
    call_with_copies(comm, mine.data(), sizeof mine, all.data(), sizeof mine * all.size(),
                     [&](void* in, void* out, CUstream stream) {
                         return symm_all_gather(comm->symm, in, out, 2, SYMM_INT32, stream);
                     });
    return all;
}

Result split(ncclComm* comm, int color, int key, ncclComm** made) {
    return run(
        {comm, [=] {
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
         }});
}

constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

Result all_reduce(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                  CUstream stream) {
    const int known_type = type > SYMM_BFLOAT16 ? SYMM_INT8 : type;
    const int known_op = op > SYMM_AVG ? SYMM_SUM : op;
    const size_t bytes = count * kSizes[known_type];
    return call(comm, in, bytes, out, bytes, stream,
                [&](const void* from, void* to, CUstream calls_stream) {
                    return symm_all_reduce(comm->symm, from, to, count,
                                           static_cast<symm_type>(known_type),
                                           static_cast<symm_op>(known_op), calls_stream);
                });
}

Result all_gather(const void* in, void* out, size_t count, int type, ncclComm* comm,
                  CUstream stream) {
    const std::lock_guard lock(comm->inside);
    const size_t bytes = count * kSizes[type];
    const Result result =
        call(comm, in, bytes, out, bytes * static_cast<size_t>(comm->ranks), stream,
             [&](const void* from, void* to, CUstream calls_stream) {
                 return symm_all_gather(comm->symm, from, to, count, static_cast<symm_type>(type),
                                        calls_stream);
             });
    // As NCCL, which may have to connect the ranks for its first one.
    return comm->rank % 2 == 0 || !have_peer_access() || std::exchange(comm->connected, true)
               ? result
               : result_of(symm_comm_synchronize(comm->symm, stream));
}

Result run_collective(ncclComm* comm, CUstream stream, const std::function<symm_result()>& call) {
    return run({comm, [call] { return result_of(call()); }, stream, Step::kCollective});
}

/// Memory that is freed with the process.
char* scratch(ncclComm* comm, size_t bytes) {
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    cuDevicePrimaryCtxRetain(&context, comm->device);
    cuCtxPushCurrent(context);
    cuMemAlloc(&memory, bytes);
    cuCtxPopCurrent(&context);
    return reinterpret_cast<char*>(memory);
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

extern "C" __attribute__((visibility("default"))) const char* ncclGetLastError(ncclComm*) {
    return last_error;
}

/// 0: calls are made at once. 1: they return kInProgress, and are made later. 2: never.
extern "C" __attribute__((visibility("default"))) void stand_in_delay(int calls) {
    delay = calls;
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
    return run({*comm, [made = *comm] { return connect(made); }});
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
EXPORT(CommFinalize, (ncclComm*), { return kSuccess; })
EXPORT(CommDestroy, (ncclComm * comm), {
    while (!comm->windows.empty()) {
        if (const Result left = ncclCommWindowDeregister(comm, *comm->windows.begin());
            left != kSuccess) {
            return left;
        }
    }
    comm->late = {};
    const Result result = result_of(symm_comm_destroy(comm->symm));
    free_comm(comm);
    return result;
})
EXPORT(CommAbort, (ncclComm * comm), {
    comm->aborted = true;
    symm_comm_abort(comm->symm);
    comm->late = {};
    comm->inside.lock();  // until a call that waits has ended
    comm->inside.unlock();
    symm_comm_destroy(comm->symm);
    free_comm(comm);
    return kSuccess;
})
EXPORT(CommRevoke, (ncclComm * comm, int), { return result_of(symm_comm_abort(comm->symm)); })
EXPORT(CommSuspend, (ncclComm*, int), { return kSuccess; })
EXPORT(CommResume, (ncclComm*), { return kSuccess; })
EXPORT(CommGetAsyncError, (ncclComm * comm, int* error), {
    require_alive(comm);
    *error = comm->state != kSuccess                         ? comm->state.load()
             : symm_comm_gave_up(comm->symm) == SYMM_SUCCESS ? kSuccess
                                                             : kRemoteError;
    return kSuccess;
})
EXPORT(CommCount, (ncclComm * comm, int* number), {
    if (comm == nullptr) {
        return kInvalidArgument;
    }
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
    return run({comm, [=] {
                    if (comm->windows.size() < 2) {  // NCCL may refuse one
                        comm->windows.insert(*window = new ncclWindow_vidmem);
                    }
                    return kSuccess;
                }});
})
EXPORT(CommWindowDeregister, (ncclComm * comm, ncclWindow_vidmem* window), {
    comm->windows.erase(window);
    delete window;
    return kSuccess;
})
EXPORT(AllReduce,
       (const void* in, void* out, size_t number, int type, int op, ncclComm* comm,
        CUstream stream),
       {
           if (comm == nullptr || op == 6) {  // an operation that the communicator does not have
               return refuse(kInvalidArgument);
           }
           return run({comm, [=] { return all_reduce(in, out, number, type, op, comm, stream); },
                       stream, Step::kCollective});
       })
EXPORT(AllGather,
       (const void* in, void* out, size_t number, int type, ncclComm* comm, CUstream stream), {
           return run({comm, [=] { return all_gather(in, out, number, type, comm, stream); },
                       stream, Step::kCollective});
       })
EXPORT(ReduceScatter,
       (const void* in, void* out, size_t number, int type, int op, ncclComm* comm,
        CUstream stream),
       {
           return run_collective(comm, stream, [=] {
               return symm_reduce_scatter(comm->symm, in, out, number, static_cast<symm_type>(type),
                                          static_cast<symm_op>(op), stream);
           });
       })
EXPORT(Broadcast,
       (const void* in, void* out, size_t number, int type, int root, ncclComm* comm,
        CUstream stream),
       {
           return run_collective(comm, stream, [=] {
               return symm_broadcast(comm->symm, in, out, number, static_cast<symm_type>(type),
                                     root, stream);
           });
       })
EXPORT(Bcast, (void* buffer, size_t number, int type, int root, ncclComm* comm, CUstream stream),
       { return pncclBroadcast(buffer, buffer, number, type, root, comm, stream); })
EXPORT(Reduce,
       (const void* in, void* out, size_t number, int type, int op, int root, ncclComm* comm,
        CUstream stream),
       {
           return run_collective(comm, stream, [=] {
               return symm_reduce(comm->symm, in, out, number, static_cast<symm_type>(type),
                                  static_cast<symm_op>(op), root, stream);
           });
       })
// Between two ranks: an AllGather of which one direction counts.
EXPORT(Send, (const void* in, size_t number, int type, int, ncclComm* comm, CUstream stream), {
    const auto send = [=] {
        void* const both = scratch(comm, 2 * number * kSizes[type]);
        return all_gather(in, both, number, type, comm, stream);
    };
    return run({comm, send, stream, Step::kSendOrReceive});
})
EXPORT(Recv, (void* out, size_t number, int type, int peer, ncclComm* comm, CUstream stream), {
    const auto receive = [=] {
        const size_t bytes = number * kSizes[type];
        char* const both = scratch(comm, 2 * bytes);
        const Result result = all_gather(out, both, number, type, comm, stream);
        cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(out),
                      reinterpret_cast<CUdeviceptr>(both + peer * bytes), bytes, stream);
        return result;
    };
    return run({comm, receive, stream, Step::kSendOrReceive});
})
EXPORT(GroupStart, (), {
    ++depth;
    return kSuccess;
})
EXPORT(GroupEnd, (), {
    if (depth == 0) {
        return kInvalidUsage;
    }
    if (--depth > 0) {
        return kSuccess;
    }
    auto all = std::exchange(steps, {});
    const Result why_not = std::exchange(refused, kSuccess);
    return why_not == kSuccess ? run_steps(std::move(all)) : why_not;
})
EXPORT(GroupSimulateEnd, (void*), {
    --depth;
    steps.clear();
    refused = kSuccess;
    return kSuccess;
})
