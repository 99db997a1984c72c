#include "common/nccl/nccl_communicator.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#include "common/cuda/driver.hpp"
#include "common/ranks/rank.hpp"
#include "common/sys/log.hpp"

namespace symm {
namespace {

void* pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclLibrary& library, NcclLibrary::UniqueId id, int ranks,
                                   int rank)
    : library_(library), ranks_(ranks) {
    library_.check(library_.comm_init_rank(&comm_, ranks, id, rank),
                   fmt::format("ncclCommInitRank(ranks={}, rank={})", ranks, rank));
}

NcclCommunicator::~NcclCommunicator() {
    if (!creator_.is_this_one()) {
        return;  // in a child of fork(), NCCL's calls may hang
    }
    // If an exception destroys it, other ranks may never make the calls that are queued here, and
    // ncclCommDestroy would wait for them.
    if (std::uncaught_exceptions() > 0) {
        library_.comm_abort(comm_);
        return;
    }
    deregister_windows();
    if (library_.comm_destroy(comm_) != 0) {
        log::error("ncclCommDestroy() failed");
    }
}

NcclLibrary::UniqueId NcclCommunicator::unique_id(const NcclLibrary& library) {
    NcclLibrary::UniqueId id{};
    library.check(library.get_unique_id(&id), "ncclGetUniqueId()");
    return id;
}

NcclLibrary::Window NcclCommunicator::register_window(CUdeviceptr address, std::size_t bytes) {
    constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
    NcclLibrary::Window window = nullptr;
    library_.check(library_.window_register(comm_, pointer(address), bytes, &window, kSymmetric),
                   fmt::format("ncclCommWindowRegister(size={}, symmetric)", bytes));
    if (window == nullptr) {  // NCCL's result if windows are not supported
        throw std::runtime_error(
            "ncclCommWindowRegister() returned no window: it is not supported here");
    }
    return windows_.emplace_back(window);
}

void NcclCommunicator::deregister_windows() {
    for (NcclLibrary::Window window : std::exchange(windows_, {})) {
        if (library_.window_deregister(comm_, window) != 0) {
            log::error("ncclCommWindowDeregister() failed");
        }
    }
}

void NcclCommunicator::create_device_communicator(const void* requirements, void* dev_comm) {
    library_.check(library_.dev_comm_create(comm_, requirements, dev_comm), "ncclDevCommCreate()");
}

void NcclCommunicator::destroy_device_communicator(const void* dev_comm) {
    if (library_.dev_comm_destroy(comm_, dev_comm) != 0) {
        log::error("ncclDevCommDestroy() failed");
    }
}

void NcclCommunicator::all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type,
                                  int op, CUstream stream) {
    library_.check(library_.all_reduce(pointer(in), pointer(out), count, type, op, comm_, stream),
                   fmt::format("ncclAllReduce(count={})", count));
}

void NcclCommunicator::reduce_scatter(CUdeviceptr in, CUdeviceptr out, std::size_t part, int type,
                                      int op, CUstream stream) {
    library_.check(
        library_.reduce_scatter(pointer(in), pointer(out), part, type, op, comm_, stream),
        fmt::format("ncclReduceScatter(recvcount={})", part));
}

void NcclCommunicator::all_gather(CUdeviceptr in, CUdeviceptr out, std::size_t part, int type,
                                  CUstream stream) {
    library_.check(library_.all_gather(pointer(in), pointer(out), part, type, comm_, stream),
                   fmt::format("ncclAllGather(sendcount={})", part));
}

void NcclCommunicator::broadcast(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type,
                                 int root, CUstream stream) {
    library_.check(library_.broadcast(pointer(in), pointer(out), count, type, root, comm_, stream),
                   fmt::format("ncclBroadcast(count={})", count));
}

void NcclCommunicator::reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type, int op,
                              int root, CUstream stream) {
    library_.check(library_.reduce(pointer(in), pointer(out), count, type, op, root, comm_, stream),
                   fmt::format("ncclReduce(count={})", count));
}

void NcclCommunicator::all_to_all(CUdeviceptr in, CUdeviceptr out, std::size_t part,
                                  CUstream stream) {
    constexpr int kBytes = 0;  // ncclInt8
    library_.check(library_.group_start(), "ncclGroupStart()");
    for (int p = 0; p < ranks_; ++p) {
        const std::size_t begin = static_cast<std::size_t>(p) * part;
        library_.check(library_.send(pointer(in + begin), part, kBytes, p, comm_, stream),
                       fmt::format("ncclSend(count={})", part));
        library_.check(library_.recv(pointer(out + begin), part, kBytes, p, comm_, stream),
                       fmt::format("ncclRecv(count={})", part));
    }
    library_.check(library_.group_end(), "ncclGroupEnd()");
}

std::unique_ptr<NcclLibrary> load_nccl(Rank& rank, std::string& why_not) {
    std::unique_ptr<NcclLibrary> library;
    if (why_not.empty()) {
        if (is_emulated()) {
            why_not = "it needs GPUs, and these are emulated";
        } else {
            library = NcclLibrary::load(why_not);
        }
        if (library != nullptr && rank.size() > device_count()) {
            // Once, before NCCL reads it: ranks may be threads.
            [[maybe_unused]] static const int set = setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
            if (!library->lets_ranks_share_a_gpu()) {
                why_not = fmt::format(
                    "NCCL {} needs a GPU for each rank; 2.30.7 and newer let ranks share",
                    library->version());
            }
        }
    }
    // All or none: one rank without the library would leave the others waiting in ncclCommInitRank.
    for (const std::string& reason : rank.bootstrap().allgather_text("nccl", why_not)) {
        if (!reason.empty()) {
            why_not = reason;
            library.reset();
        }
    }
    return library;
}

std::unique_ptr<NcclCommunicator> connect_nccl(Rank& rank, const NcclLibrary& library) {
    const auto mine =
        rank.rank() == 0 ? NcclCommunicator::unique_id(library) : NcclLibrary::UniqueId{};
    const auto ids = rank.bootstrap().allgather("nccl id", mine);
    return std::make_unique<NcclCommunicator>(library, ids[0], rank.size(), rank.rank());
}

}  // namespace symm
