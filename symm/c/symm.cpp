#include "symm/c/symm.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/bootstrap/meeting.hpp"
#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/launcher_environment.hpp"
#include "common/sys/creator_process.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/refuse_unless.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "symm/c/marks.hpp"
#include "symm/c/results.hpp"
#include "symm/collectives/all_reduce_rms_norm.hpp"

using namespace symm;

/// A handle. It is never freed (16 bytes), so a call with a destroyed one finds that out. That
/// needs no lock, which another thread might hold when a program forks.
struct symm_comm {
    struct Open;

    CreatorProcess creator;
    std::unique_ptr<Open> open;  ///< Empty once it is destroyed.
};

/// A communicator that is not destroyed.
struct symm_comm::Open {
    Open(std::unique_ptr<Bootstrap> bootstrap, RankMode mode, std::optional<int> device)
        : rank(std::move(bootstrap), mode, device) {}
    Open(const Open&) = delete;

    Rank rank;
    std::optional<Stream> stream;
    std::optional<Communicator> communicator;
    std::optional<collectives::AllReduceRmsNorm> rms_norm;  ///< From its first call on.
    Marks marks;
    std::atomic<bool> aborted = false;
};

namespace {

using Open = symm_comm::Open;

symm_comm* new_handle(std::unique_ptr<Open> open) {
    static std::mutex mutex;
    static auto& all = *new std::deque<symm_comm>;
    const std::lock_guard lock(mutex);
    return &all.emplace_back(symm_comm{CreatorProcess(), std::move(open)});
}

/// Whether the values of two enumerations have the same numbers.
constexpr bool agree(const auto& c, const auto& cpp) {
    return std::equal(c.begin(), c.end(), cpp.begin(), cpp.end(), [](auto one, auto other) {
        return static_cast<int>(one) == static_cast<int>(other);
    });
}

static_assert(SYMM_VERSION == SYMM_PROJECT_VERSION, "symm.h and CMakeLists.txt disagree");
static_assert(agree(std::array{SYMM_INT8, SYMM_UINT8, SYMM_INT32, SYMM_UINT32, SYMM_INT64,
                               SYMM_UINT64, SYMM_HALF, SYMM_FLOAT, SYMM_DOUBLE, SYMM_BFLOAT16},
                    std::array{DataType::kInt8, DataType::kUint8, DataType::kInt32,
                               DataType::kUint32, DataType::kInt64, DataType::kUint64,
                               DataType::kHalf, DataType::kFloat, DataType::kDouble,
                               DataType::kBfloat16}));
static_assert(agree(std::array{SYMM_SUM, SYMM_PROD, SYMM_MAX, SYMM_MIN, SYMM_AVG},
                    std::array{ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                               ReduceOp::kAvg}));

using symm::guarded;
/// The same for a function of a communicator.
template <class Body>
symm_result guarded(const symm_comm* comm, const Body& body) noexcept {
    return guarded([&] {
        require(comm, "comm");
        refuse_unless(
            comm->creator.is_this_one(),
            "comm belongs to process {}: this process, {}, is a child that fork() made of "
            "it, and cannot use it. Start ranks as new programs (exec, posix_spawn; "
            "Python: multiprocessing's \"spawn\")",
            comm->creator.id(), ::getpid());
        refuse_unless(comm->open != nullptr, "comm was destroyed by symm_comm_destroy()");
        body(*comm->open);
    });
}

/// Whether a child of fork() was passed its parent's communicator.
bool is_of_parent(const symm_comm* comm) {
    return comm != nullptr && !comm->creator.is_this_one();
}
bool is_usable(const symm_comm* comm) {
    return comm != nullptr && comm->creator.is_this_one() && comm->open != nullptr;
}

CUdeviceptr address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Chooses the driver: without nvcc, kernels were compiled for emulated GPUs only.
void choose() {
#ifdef SYMM_EMULATED_ONLY
    if (env::choice("SYMM_DRIVER") == "native") {
        throw UsageError(
            "SYMM_DRIVER=native is not possible: this libsymm.so was built without nvcc, for "
            "emulated GPUs only");
    }
    choose_driver("emulated");
#endif
}

/// Every creation: `meet` returns the connection to the other ranks.
symm_result create(symm_comm** comm, const symm_options* asked,
                   const std::function<std::unique_ptr<Bootstrap>()>& meet) noexcept {
    return guarded([&] {
        require(comm, "comm");
        *comm = nullptr;
        const symm_options options = asked != nullptr ? *asked : symm_options SYMM_OPTIONS_INIT;
        refuse_unless(options.size == sizeof(symm_options),
                      "symm_options is that of another version: begin with SYMM_OPTIONS_INIT, and "
                      "compile with the symm.h of this libsymm.so");
        refuse_unless(options.device >= -1 && options.timeout >= 0,
                      "symm_options: device {} and timeout {}, but a device is -1 or more, and a "
                      "timeout 0 or more",
                      options.device, options.timeout);
        CommunicatorOptions how;
        how.max_blocks = options.max_blocks;
        if (options.timeout > 0) {
            constexpr double kDay = 86400;
            how.limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
                std::chrono::duration<double>(std::min(options.timeout, kDay)));
        }
        require_environment();
        choose();
        device_count();                // initialises the driver
        const CurrentContext callers;  // creation makes the rank's current
        std::unique_ptr<Bootstrap> bootstrap = meet();
        const RankMode mode = common_mode(*bootstrap);
        auto made = std::make_unique<Open>(
            std::move(bootstrap), mode,
            options.device < 0 ? std::nullopt : std::optional(options.device));
        try {
            made->stream.emplace();
            made->communicator.emplace(made->rank, how);
        } catch (const std::exception& error) {  // the others need not wait for this rank
            made->rank.bootstrap().fail(error.what());
            throw;
        }
        *comm = new_handle(std::move(made));
    });
}

/// Makes the stream's later work wait for what is queued in `earlier` so far.
void follow(CUstream stream, CUstream earlier) {
    const Event end(CU_EVENT_DISABLE_TIMING);
    end.record(earlier);
    end.make_wait(stream);
}

void require_rank(int rank, int ranks) {
    refuse_unless(ranks >= 1 && ranks <= kMaxRanks && rank >= 0 && rank < ranks,
                  "there is no rank {} of {}: 1 to {} ranks can meet", rank, ranks, kMaxRanks);
}

Call call_of(Collective collective, const void* in, void* out, std::size_t count, symm_type type,
             symm_op op, int root) {
    return {{static_cast<DataType>(type), static_cast<ReduceOp>(op), collective, root},
            address(in),
            address(out),
            count};
}

collectives::RmsNormRows rows_of(const symm_rms_norm& call) {
    refuse_unless(
        call.size == sizeof(call),
        "symm_rms_norm is that of another version: set its size to sizeof(symm_rms_norm)");
    refuse_unless(call.weight_type == call.type || call.weight_type == SYMM_FLOAT,
                  "RMSNorm's weights have the type of x ({}), or SYMM_FLOAT, not {}",
                  static_cast<int>(call.type), static_cast<int>(call.weight_type));
    const bool is_float8 = call.out_type == SYMM_FLOAT8_E4M3;
    refuse_unless(is_float8 || call.out_type == call.type,
                  "RMSNorm's out has the type of x ({}), or SYMM_FLOAT8_E4M3, not {}",
                  static_cast<int>(call.type), static_cast<int>(call.out_type));
    refuse_unless(is_float8 == (call.out_scale != nullptr),
                  "RMSNorm needs an out_scale for SYMM_FLOAT8_E4M3, and for no other out_type");
    return {.x = address(call.x),
            .residual = address(call.residual),
            .out = address(call.out),
            .weight = address(call.weight),
            .rows = call.rows,
            .hidden = call.hidden,
            .type = static_cast<DataType>(call.type),
            .epsilon = call.epsilon,
            .float_weights = call.weight_type == SYMM_FLOAT,
            .weight_offset = call.weight_offset,
            .bias = address(call.bias),
            .out_scale = address(call.out_scale)};
}

symm_result call(symm_comm* comm, const Call& call, symm_stream stream) noexcept {
    return guarded(comm, [&](Open& open) { open.communicator->call(call, stream); });
}

int may_wait(symm_comm* comm, const Call& call, symm_stream stream) noexcept {
    bool waits = true;
    guarded(comm, [&](Open& open) { waits = open.communicator->may_wait(call, stream); });
    return waits ? 1 : 0;
}

}  // namespace

int symm_version(void) {
    return SYMM_VERSION;
}

const char* symm_result_name(symm_result result) {
    constexpr const char* kNames[] = {"SYMM_SUCCESS",      "SYMM_ERROR_INVALID_ARGUMENT",
                                      "SYMM_ERROR_RANK",   "SYMM_ERROR_CUDA",
                                      "SYMM_ERROR_SYSTEM", "SYMM_ERROR_FAILED"};
    const auto number = static_cast<std::size_t>(result);
    return number < std::size(kNames) ? kNames[number] : "unknown symm_result";
}

const char* symm_last_error(void) {
    return last_error.data();
}

symm_result symm_is_emulated(int* emulated) {
    return guarded([&] {
        require(emulated, "emulated");
        choose();
        *emulated = is_emulated() ? 1 : 0;
    });
}

void* symm_driver_function(const char* name) {
    void* function = nullptr;
    guarded([&] {
        require(name, "name");
        choose();
        const DriverTable& driver = driver_table();
#define SYMM_DRIVER_FUNCTION(known, parameters, arguments)   \
    if (std::string_view(name) == #known) {                  \
        function = reinterpret_cast<void*>(driver.known##_); \
    }
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
        refuse_unless(function != nullptr, "libsymm calls no function of the driver named {}",
                      name);
    });
    return function;
}

symm_result symm_comm_create(symm_comm** comm, int rank, int ranks, const char* name,
                             const symm_options* options) {
    return create(comm, options, [&] {
        require_rank(rank, ranks);
        require(name, "name");
        return join(rank, ranks, socket_name(name));
    });
}

symm_result symm_comm_create_from_launcher(symm_comm** comm, const symm_options* options) {
    return create(comm, options, [] {
        const auto place = placement_from_environment();
        if (!place) {
            throw UsageError(
                "no launcher's variables are set (RANK and WORLD_SIZE, for example): start the "
                "ranks with torchrun, mpirun or srun");
        }
        return join(place->rank, place->size, place->name + "-c");
    });
}

symm_result symm_comm_create_by_allgather(symm_comm** comm, int rank, int ranks,
                                          symm_allgather allgather, void* context,
                                          const symm_options* options) {
    return create(comm, options, [&] {
        require_rank(rank, ranks);
        require(reinterpret_cast<const void*>(allgather), "allgather");
        return join(
            rank, ranks,
            socket_name(name_by_allgather(rank, ranks, SYMM_VERSION,
                                          [&](const void* mine, void* all, std::size_t bytes) {
                                              return allgather(context, mine, all, bytes);
                                          })));
    });
}

int symm_comm_rank(const symm_comm* comm) {
    return is_usable(comm) ? comm->open->communicator->rank() : -1;
}
int symm_comm_ranks(const symm_comm* comm) {
    return is_usable(comm) ? comm->open->communicator->ranks() : -1;
}
int symm_comm_device(const symm_comm* comm) {
    return is_usable(comm) ? comm->open->rank.device() : -1;
}
symm_stream symm_comm_stream(const symm_comm* comm) {
    return is_usable(comm) ? comm->open->stream->get() : nullptr;
}

symm_result symm_window_allocate(symm_comm* comm, size_t bytes, void** window) {
    return guarded(comm, [&](Open& open) {
        require(window, "window");
        *window = reinterpret_cast<void*>(open.communicator->allocate(bytes));
    });
}

symm_result symm_window_register(symm_comm* comm, void* memory, size_t bytes, void** window) {
    return guarded(comm, [&](Open& open) {
        require(window, "window");
        *window =
            reinterpret_cast<void*>(open.communicator->register_memory(address(memory), bytes));
    });
}

symm_result symm_window_release(symm_comm* comm, void* window) {
    return guarded(comm, [&](Open& open) { open.communicator->release(address(window)); });
}

symm_result symm_window_retire(symm_comm* comm, void* window) {
    return guarded(comm, [&](Open& open) { open.communicator->retire(address(window)); });
}

// A call, and whether it may wait. The rest are the parameters of both.
#define SYMM_COLLECTIVE(name, kind, op, root, ...)                                                \
    symm_result symm_##name(__VA_ARGS__) {                                                        \
        return call(comm, call_of(Collective::kind, in, out, count, type, op, root), stream);     \
    }                                                                                             \
    int symm_##name##_may_wait(__VA_ARGS__) {                                                     \
        return may_wait(comm, call_of(Collective::kind, in, out, count, type, op, root), stream); \
    }
SYMM_COLLECTIVE(all_reduce, kAllReduce, op, 0, symm_comm* comm, const void* in, void* out,
                size_t count, symm_type type, symm_op op, symm_stream stream)
SYMM_COLLECTIVE(reduce_scatter, kReduceScatter, op, 0, symm_comm* comm, const void* in, void* out,
                size_t count, symm_type type, symm_op op, symm_stream stream)
SYMM_COLLECTIVE(all_gather, kAllGather, SYMM_SUM, 0, symm_comm* comm, const void* in, void* out,
                size_t count, symm_type type, symm_stream stream)
SYMM_COLLECTIVE(broadcast, kBroadcast, SYMM_SUM, root, symm_comm* comm, const void* in, void* out,
                size_t count, symm_type type, int root, symm_stream stream)
SYMM_COLLECTIVE(reduce, kReduce, op, root, symm_comm* comm, const void* in, void* out, size_t count,
                symm_type type, symm_op op, int root, symm_stream stream)
#undef SYMM_COLLECTIVE

symm_result symm_all_reduce_rms_norm(symm_comm* comm, const symm_rms_norm* call,
                                     symm_stream stream) {
    return guarded(comm, [&](Open& open) {
        require(call, "call");
        const collectives::RmsNormRows rows = rows_of(*call);
        if (!open.rms_norm) {
            const CurrentContext current(open.rank.gpu());
            refuse_unless(!is_captured(stream),
                          "a communicator's first symm_all_reduce_rms_norm() cannot be captured: "
                          "make one before");
            open.rms_norm.emplace(*open.communicator);
        }
        (*open.rms_norm)(rows, stream);
    });
}

symm_result symm_comm_synchronize(symm_comm* comm, symm_stream stream) {
    return guarded(comm, [&](Open& open) {
        const CurrentContext current(open.rank.gpu());
        if (stream != open.stream->get()) {  // ours waits for the caller's
            refuse_unless(!is_captured(stream),
                          "the stream is being captured: end the capture, launch the graph, and "
                          "synchronize then");
            follow(open.stream->get(), stream);
        }
        open.communicator->synchronize(*open.stream, "the stream");
    });
}

symm_result symm_comm_mark(symm_comm* comm, symm_stream stream, size_t* mark) {
    return guarded(comm, [&](Open& open) {
        require(mark, "mark");
        const CurrentContext current(open.rank.gpu());
        *mark = open.marks.add(stream);
    });
}

symm_result symm_comm_passed(symm_comm* comm, size_t* mark) {
    return guarded(comm, [&](Open& open) {
        require(mark, "mark");
        const CurrentContext current(open.rank.gpu());
        *mark = open.marks.passed();
    });
}

symm_result symm_comm_follow(symm_comm* comm, symm_stream stream, symm_stream earlier) {
    return guarded(comm, [&](Open& open) {
        const CurrentContext current(open.rank.gpu());
        if (stream == earlier || is_captured(stream)) {
            return;
        }
        refuse_unless(!is_captured(earlier),
                      "the stream to follow is being captured, and the other is not: end the "
                      "capture first");
        follow(stream, earlier);
    });
}

symm_result symm_comm_finish(symm_comm* comm) {
    return guarded(comm, [&](Open& open) { open.communicator->finish(); });
}

symm_result symm_comm_finish_within(symm_comm* comm, double seconds) {
    return guarded(comm, [&](Open& open) {
        constexpr double kMost = 1e9;
        refuse_unless(seconds >= 0, "{} seconds are not a time to wait", seconds);
        const std::chrono::duration<double> limit(std::min(seconds, kMost));
        std::mutex mutex;
        std::condition_variable_any finished;  // notified by the stop token alone
        const std::jthread timer([&](const std::stop_token& stop) {
            std::unique_lock lock(mutex);
            finished.wait_for(lock, stop, limit, [] { return false; });
            if (!stop.stop_requested()) {
                symm_comm_abort(comm);
            }
        });
        open.communicator->finish();
    });
}

symm_result symm_copy(symm_comm* comm, void* to, const void* from, size_t bytes) {
    return guarded(comm, [&](Open& open) {
        const CurrentContext current(open.rank.gpu());
        cu_check(cuMemcpyAsync(address(to), address(from), bytes, open.stream->get()),
                 "cuMemcpyAsync(to={}, from={}, bytes={})", to, from, bytes);
        open.communicator->synchronize(*open.stream, "the copy");
    });
}

symm_result symm_comm_async_error(symm_comm* comm) {
    return guarded(comm, [&](Open& open) { open.communicator->throw_async_error(); });
}

symm_result symm_comm_gave_up(symm_comm* comm) {
    return guarded(comm, [&](Open& open) {
        if (open.communicator->has_given_up()) {
            open.communicator->throw_async_error();
        }
    });
}

symm_result symm_comm_abort(symm_comm* comm) {
    return is_of_parent(comm) ? SYMM_SUCCESS : guarded(comm, [&](Open& open) {
        open.aborted = true;
        open.communicator->abort();
        open.rank.bootstrap().abort();
    });
}

symm_result symm_comm_destroy(symm_comm* comm) {
    if (comm == nullptr || is_of_parent(comm)) {
        return SYMM_SUCCESS;
    }
    return guarded(comm, [&](Open& open) {
        const std::unique_ptr<Open> owned = std::move(comm->open);
        const std::string error =
            open.aborted ? "it was aborted" : open.communicator->async_error();
        if (!error.empty()) {
            open.rank.bootstrap().fail(error);
        }
    });
}
