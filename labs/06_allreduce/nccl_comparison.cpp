#include "labs/06_allreduce/nccl_comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "common/log/log.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"

namespace symm {
namespace {

/// A window whose memory is one segment. NCCL 2.28 registers only the first segment of a window,
/// and its kernels access memory beyond the end of that segment. Communicator::allocate() makes
/// several segments above 256 MiB.
CUdeviceptr window_of_one_segment(Communicator& communicator, std::size_t bytes) {
    bytes = std::max<std::size_t>(bytes, 1);
    const auto give_back = [](void* memory) {
        try {
            mem_free(memory);
        } catch (const std::exception& error) {
            log::error("{}", error.what());
        }
    };
    const std::unique_ptr<void, void (*)(void*)> memory(mem_alloc(bytes, bytes), give_back);
    // From now on the window keeps the memory.
    return communicator.register_memory(reinterpret_cast<CUdeviceptr>(memory.get()), bytes);
}

/// nccl.h's ncclDataType_t and ncclRedOp_t.
int nccl_number(DataType type) {
    switch (type) {
        case DataType::kInt8:
            return 0;
        case DataType::kUint8:
            return 1;
        case DataType::kInt32:
            return 2;
        case DataType::kUint32:
            return 3;
        case DataType::kInt64:
            return 4;
        case DataType::kUint64:
            return 5;
        case DataType::kHalf:
            return 6;
        case DataType::kFloat:
            return kNcclFloat;
        case DataType::kDouble:
            return 8;
        case DataType::kBfloat16:
            break;
    }
    return kNcclBfloat16;
}
int nccl_number(ReduceOp op) {
    switch (op) {
        case ReduceOp::kSum:
            return kNcclSum;
        case ReduceOp::kProd:
            return 1;
        case ReduceOp::kMax:
            return 2;
        case ReduceOp::kMin:
            return 3;
        case ReduceOp::kAvg:
            break;
    }
    return 4;
}

}  // namespace

double bus_bandwidth(std::size_t bytes, int ranks, double microseconds) {
    return static_cast<double>(bytes) / (microseconds * 1e3) * 2 * (ranks - 1) / ranks;
}

NcclComparison::NcclComparison(Rank& rank, Communicator& communicator,
                               const ComparisonOptions& options)
    : rank_(rank),
      communicator_(communicator),
      options_(options),
      in_(window_of_one_segment(communicator, options.most_bytes)),
      out_(options.in_place ? in_ : window_of_one_segment(communicator, options.most_bytes)),
      timer_(rank, stream_, options.iterations, options.graph,
             [this](std::string_view what) { communicator_.synchronize(stream_, what); }),
      verifier_(rank.rank(), rank.size()) {
    find_nccl();
}

void NcclComparison::find_nccl() {
    why_no_nccl_ = options_.nccl ? "" : "as asked";
    library_ = load_nccl(rank_, why_no_nccl_);
    if (library_ == nullptr) {
        return;
    }
    nccl_ = connect_nccl(rank_, *library_);
    nccl_symmetric_ = connect_nccl(rank_, *library_);
    bool registered = true;
    try {
        nccl_symmetric_->register_window(in_, options_.most_bytes);
        if (!options_.in_place) {
            nccl_symmetric_->register_window(out_, options_.most_bytes);
        }
    } catch (const std::exception& error) {
        log::info("NCCL's symmetric path is left out: {}", error.what());
        registered = false;
    }
    const auto all = rank_.bootstrap().allgather("nccl windows", static_cast<int>(registered));
    if (std::find(all.begin(), all.end(), 0) != all.end()) {
        nccl_symmetric_.reset();
    }
}

void NcclComparison::check_call(std::size_t count, const std::function<void()>& call) {
    verifier_.fill(stream_, options_.arithmetic, in_, count);
    if (!options_.in_place) {
        Verifier::poison(stream_, out_, count * size_of(options_.arithmetic.type));
    }
    rank_.bootstrap().together("checked call", [&] {
        call();
        communicator_.synchronize(stream_, "the AllReduce");
        verifier_.check(stream_, options_.arithmetic, out_, count);
    });
}

double NcclComparison::time_turn(std::size_t count, const std::function<void()>& call) {
    const double time = timer_.time(call, [&] {
        if (!options_.in_place) {
            Verifier::poison(stream_, out_, count * size_of(options_.arithmetic.type));
        }
    });
    // In place the timed calls have added up their own results, so one more call is made and
    // checked.
    if (options_.in_place) {
        check_call(count, call);
    } else {
        rank_.bootstrap().together(
            "timed result", [&] { verifier_.check(stream_, options_.arithmetic, out_, count); });
    }
    return time;
}

Measured NcclComparison::run(std::size_t count) {
    Measured measured;
    const auto [type, op] = options_.arithmetic;
    struct Candidate {
        std::function<void()> call;
        std::vector<double> times;
    };
    std::vector<Candidate> candidates;
    candidates.push_back({[&] {
        measured.plan =
            communicator_.all_reduce(in_, out_, count, options_.arithmetic.type,
                                     options_.arithmetic.op, stream_.get(), options_.algorithm);
    }});
    for (NcclCommunicator* nccl : {nccl_.get(), nccl_symmetric_.get()}) {
        if (nccl != nullptr) {
            candidates.push_back(
                {[this, nccl, count, number = nccl_number(type), of_op = nccl_number(op)] {
                    nccl->all_reduce(in_, out_, count, number, of_op, stream_.get());
                }});
        }
    }
    check_call(count, candidates[0].call);
    for (int round = 0; round < options_.rounds; ++round) {
        for (Candidate& candidate : candidates) {
            candidate.times.push_back(time_turn(count, candidate.call));
        }
    }
    measured.ours = median(candidates[0].times);
    if (nccl_) {
        measured.nccl = median(candidates[1].times);
    }
    if (nccl_symmetric_) {
        measured.nccl_symmetric = median(candidates[2].times);
    }
    return measured;
}

}  // namespace symm
