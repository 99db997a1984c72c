#include "labs/06_allreduce/algorithms/loaded/loaded.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/emu/kernels/launch.hpp"
#include "common/simt/back_off.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/file.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/loaded/abi.h"

namespace symm {
namespace {

std::mutex loading;
std::string loaded_file;
std::size_t loaded_hash = 0;  // of its bytes
std::array<const symm_algorithm*, kMostLoaded> algorithms{};

struct Bytes {
    std::byte first;
};

const symm_kernel* kernel_of(const symm_algorithm& from, DataType type, int ranks) {
    return from.kernel(static_cast<int>(type), ranks);
}

/// One thread of an emulated GPU.
void run(const symm_kernel& kernel, const simt::ThreadBlock& thread, const std::byte* parameters) {
    simt::HostBlock& block = thread.host();
    const symm_host_block seen{
        block.group_index.x,
        block.grid_dim.x,
        block.size,
        thread.thread_rank(),
        block.shared,
        block.exchange,
        &block,
        [](void* self, int vote) {
            return static_cast<simt::HostBlock*>(self)->sync(vote != 0) ? 1 : 0;
        },
        [](void* self, unsigned warp) { static_cast<simt::HostBlock*>(self)->sync_warp(warp); },
        [](void* self, unsigned number, unsigned threads) {
            static_cast<simt::HostBlock*>(self)->sync_named(number, threads);
        },
        [](int idle) { simt::back_off(idle); }};
    kernel.run(&seen, parameters);
}

void launch(const symm_kernel& kernel, const QueuedCall& call, std::vector<std::byte> parameters) {
    const auto what = [&] {
        return fmt::format("cuLaunchKernel({}, blocks={}, threads={})", kernel.name,
                           call.shape.blocks, call.shape.threads);
    };
    if (is_emulated()) {
        cu_check(emu::launch_kernel(call.stream, {kernel.name, dim3(call.shape.blocks),
                                                  dim3(call.shape.threads), kernel.shared_bytes,
                                                  [&kernel, bytes = std::move(parameters)](
                                                      const simt::ThreadBlock& block) {
                                                      run(kernel, block, bytes.data());
                                                  }}),
                 "{}", what());
        return;
    }
    void* function = nullptr;
    unsigned resident = 0;
    cu_check(static_cast<CUresult>(kernel.on_gpu(call.shape.threads, &function, &resident)),
             "the function of {}", kernel.name);
    void* all[] = {parameters.data()};
    cu_check(
        cuLaunchKernel(static_cast<CUfunction>(function), call.shape.blocks, 1, 1,
                       call.shape.threads, 1, 1, kernel.shared_bytes, call.stream, all, nullptr),
        "{}", what());
}

/// The functions of AlgorithmKernels for the algorithm in one place of `algorithms`.
template <std::size_t kPlace>
struct Loaded {
    static const symm_algorithm& algorithm() { return *algorithms[kPlace]; }

    static unsigned resident(DataType type, int ranks, unsigned threads) {
        const symm_kernel* const kernel =
            ranks <= SYMM_ALGORITHM_RANKS ? kernel_of(algorithm(), type, ranks) : nullptr;
        unsigned blocks = std::numeric_limits<unsigned>::max();
        if (kernel != nullptr && is_emulated()) {
            blocks = static_cast<unsigned>(emu::threads_of_device()) / threads;
        } else if (kernel != nullptr) {
            if (kernel->on_gpu == nullptr) {
                throw UsageError(
                    "SYMM_ALGORITHMS: {} was compiled for emulated GPUs only: compile it with "
                    "nvcc, or set SYMM_DRIVER=emulated",
                    algorithm().name);
            }
            void* function = nullptr;
            cu_check(static_cast<CUresult>(kernel->on_gpu(threads, &function, &blocks)),
                     "the resident blocks of {}", kernel->name);
        }
        return blocks;
    }
    static void queue(Workspace& workspace, const QueuedCall& call) {
        const symm_kernel& kernel = *kernel_of(algorithm(), call.type, call.ranks);
        const auto memory = workspace.at<Bytes>(loaded_algorithm(kPlace));
        for (std::size_t done = 0; done < call.count; done += call.at_once) {
            if (done != 0) {
                workspace.throw_if_failed();
            }
            const Call piece = call.piece(done, call.at_once);
            symm_launch launched{call.rank,
                                 call.ranks,
                                 static_cast<int>(call.type),
                                 static_cast<int>(call.op),
                                 reinterpret_cast<const void*>(piece.in),
                                 reinterpret_cast<void*>(piece.out),
                                 piece.count,
                                 memory.first,
                                 memory.stride,
                                 {},
                                 {},
                                 call.timeout.gave_up,
                                 call.timeout.report,
                                 call.timeout.limit_ns};
            for (int p = 0; p < call.ranks; ++p) {
                launched.seen_in[p] = call.seen[p].in + (piece.in - call.in);
                launched.seen_out[p] = call.seen[p].out + (piece.out - call.out);
            }
            std::vector<std::byte> parameters(kernel.parameter_bytes);
            algorithm().fill(&launched, parameters.data());
            launch(kernel, call, std::move(parameters));
        }
    }
    static std::size_t memory(int ranks) { return algorithm().memory_bytes(ranks); }
    static void initialize(CUdeviceptr memory, int ranks) {
        const std::size_t bytes = algorithm().memory_bytes(ranks);
        if (const std::size_t from = algorithm().ones_from; from < bytes) {
            fill(memory + from, 0xff, bytes - from);
        }
    }
    static std::size_t at_once(int) {
        return algorithm().at_once != 0 ? algorithm().at_once : kAnySize;
    }
    static std::size_t above(int ranks) {
        return ranks <= SYMM_ALGORITHM_RANKS ? algorithm().above(ranks) : kAnySize;
    }
    static std::size_t up_to(int ranks) { return algorithm().up_to(ranks); }

    static constexpr AlgorithmKernels kKernels{
        .resident_blocks = resident, .queue = queue, .memory = memory, .initialize = initialize};
    static AlgorithmRow row() {
        const symm_algorithm& from = algorithm();
        return {.collective = Collective::kAllReduce,
                .algorithm = loaded_algorithm(kPlace),
                .needs = {.floating_only = from.floating_only != 0,
                          .windows = from.needs_windows != 0,
                          .addresses = true,
                          .most_ranks = SYMM_ALGORITHM_RANKS},
                .cost = {.bytes_per_thread = static_cast<unsigned>(from.bytes_per_thread),
                         .most_blocks = from.most_blocks != 0 ? from.most_blocks : 1U << 30,
                         .at_once = at_once,
                         .above = above,
                         .up_to = up_to},
                .texts = {from.why},
                .kernels = &kKernels};
    }
};

AlgorithmRow row_at(std::size_t place) {
    constexpr auto kRows = []<std::size_t... kPlace>(std::index_sequence<kPlace...>) {
        return std::array{Loaded<kPlace>::row...};
    }
    (std::make_index_sequence<kMostLoaded>());
    return kRows.at(place)();
}

/// Throws for an algorithm that lacks something.
void require_whole(const symm_algorithm& from, const std::string& file) {
    if (from.name == nullptr || from.why == nullptr || from.bytes_per_thread == 0 ||
        from.memory_bytes == nullptr || from.above == nullptr || from.up_to == nullptr ||
        from.kernel == nullptr || from.fill == nullptr) {
        throw UsageError("SYMM_ALGORITHMS={}: an algorithm lacks its name or a function", file);
    }
    for (int ranks = 2; ranks <= SYMM_ALGORITHM_RANKS; ++ranks) {
        for (const DataType type : kDataTypes) {
            const symm_kernel* const kernel = kernel_of(from, type, ranks);
            if (kernel == nullptr && (is_floating(type) || from.floating_only == 0)) {
                throw UsageError("SYMM_ALGORITHMS={}: {} has no kernel for {} and {} ranks", file,
                                 from.name, name_of(type), ranks);
            }
        }
    }
}

/// Throws if --algo could not tell them from each other.
void require_new_names(const std::vector<const symm_algorithm*>& all, const std::string& file) {
    const auto known = all_names(Algorithm{});
    std::set<std::string_view> names(known.begin(), known.end());
    for (const symm_algorithm* one : all) {
        if (!names.insert(one->name).second) {
            throw UsageError("SYMM_ALGORITHMS={}: there is an algorithm {} already", file,
                             one->name);
        }
    }
}

void load(const std::string& file) {
    const std::lock_guard lock(loading);
    if (file.empty() || file == loaded_file) {
        return;
    }
    if (!loaded_file.empty()) {
        throw UsageError("SYMM_ALGORITHMS is {}, but this process has already loaded {}", file,
                         loaded_file);
    }
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        throw UsageError("SYMM_ALGORITHMS: {}", ::dlerror());
    }
    const auto get =
        reinterpret_cast<symm_algorithms_function>(::dlsym(library, "symm_algorithms"));
    if (get == nullptr || get(SYMM_ALGORITHM_VERSION, 0) == nullptr) {
        throw UsageError("SYMM_ALGORITHMS={}: no function symm_algorithms for version {}", file,
                         SYMM_ALGORITHM_VERSION);
    }
    std::vector<const symm_algorithm*> all;
    for (unsigned number = 0; const auto* one = get(SYMM_ALGORITHM_VERSION, number); ++number) {
        require_whole(*one, file);
        all.push_back(one);
    }
    if (all.size() > kMostLoaded) {
        throw UsageError("SYMM_ALGORITHMS={}: {} algorithms, but {} are the most", file, all.size(),
                         kMostLoaded);
    }
    require_new_names(all, file);
    const std::size_t hash = std::hash<std::string>{}(read_file(file, "SYMM_ALGORITHMS"));
    for (std::size_t place = 0; place < all.size(); ++place) {
        algorithms.at(place) = all[place];
        add_algorithm(all[place]->name, row_at(place));
    }
    loaded_hash = hash;
    loaded_file = file;
}

/// What this process has loaded: a file's name and hash.
std::pair<std::string, std::size_t> loaded() {
    const std::lock_guard lock(loading);
    return {loaded_file, loaded_hash};
}

}  // namespace

void load_algorithms() {
    load(env::text("SYMM_ALGORITHMS"));
}

void load_algorithms(Bootstrap& bootstrap) {
    const std::string mine = env::text("SYMM_ALGORITHMS");
    const auto asked = bootstrap.allgather_text("algorithms", mine.empty() ? loaded().first : mine);
    if (std::ranges::all_of(asked, &std::string::empty)) {
        return;
    }
    bootstrap.together("algorithms", [&] { load(asked[0]); });
    const auto all = bootstrap.allgather("algorithms", loaded().second);
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (all[p] != all[0]) {
            throw UsageError(
                "SYMM_ALGORITHMS: rank {} has other algorithms than rank 0, whose file is {}", p,
                asked[0].empty() ? "none" : asked[0]);
        }
    }
}

}  // namespace symm
