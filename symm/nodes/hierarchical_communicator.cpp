#include "symm/nodes/hierarchical_communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {

namespace {

/// Throws if the elements from `begin` on reach beyond the end of the memory there. Of memory that
/// the driver does not know it cannot tell.
void require_memory(CUdeviceptr begin, std::size_t count, DataType type) {
    const std::size_t most = std::numeric_limits<std::size_t>::max() / size_of(type);
    const std::size_t bytes = std::min(count, most) * size_of(type);
    for (std::size_t found = 0; found < bytes;) {
        CUdeviceptr base = 0;
        std::size_t size = 0;
        const auto unknown = refusal({CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_VALUE}, [&] {
            cu_check(cuMemGetAddressRange(&base, &size, begin + found),
                     "cuMemGetAddressRange({:#x})", begin + found);
        });
        if (unknown && found == 0) {
            return;
        }
        refuse_unless(!unknown,
                      "{} x {} do not fit in the memory at {:#x}, which ends after {} bytes", count,
                      name_of(type), begin, found);
        found = base + size - begin;
    }
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(Rank& inside, Exchange& across,
                                                   const CommunicatorOptions& options)
    : rank_(inside), across_(across), inside_(inside, options) {
    for (std::size_t i = 0; i < Exchange::kDepth; ++i) {
        parts_.push_back(inside_.allocate(Exchange::part_bytes()));
    }
}

HierarchicalCommunicator::~HierarchicalCommunicator() {
    if (std::uncaught_exceptions() > 0) {
        across_.fail(
            fmt::format("rank {} of machine {} has failed", inside_.rank(), across_.machine()));
    }
}

void HierarchicalCommunicator::or_tell(const std::function<void()>& step) {
    try {
        step();
    } catch (const std::invalid_argument&) {
        throw;
    } catch (const std::exception& error) {
        tell(error.what());
        throw;
    }
}

void HierarchicalCommunicator::tell(std::string_view reason) noexcept {
    inside_.abort();
    across_.fail(reason);
    rank_.bootstrap().fail(reason);
}

void HierarchicalCommunicator::all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count,
                                          DataType type, ReduceOp op, CUstream stream) {
    const CurrentContext current(inside_.gpu());
    ++calls_;  // if it is refused, too: then the other machines' next call is another one
    or_tell([&] {
        inside_.require_possible({{type, op}, in, out, count}, stream, [&] {
            across_.require_possible(stream);
            require_memory(in, count, type);
            require_memory(out, count, type);
        });
    });
    try {
        queue(in, out, {calls_, count, 0, count, type, op, ranks()}, stream);
    } catch (const std::exception& error) {  // some steps are queued, and others are not
        tell(error.what());
        throw;
    }
}

void HierarchicalCommunicator::queue(CUdeviceptr in, CUdeviceptr out, const RailCall& call,
                                     CUstream stream) {
    const std::size_t size = size_of(call.type);
    const auto n = static_cast<std::size_t>(inside_.ranks());
    const std::size_t parted = call.all / n * n;
    // An average is a sum until all machines are added up.
    const ReduceOp op_inside = call.op == ReduceOp::kAvg ? ReduceOp::kSum : call.op;
    // The part of each rank in the piece that starts at `begin`.
    const auto part_at = [&](std::size_t begin) {
        return std::min(Exchange::part_bytes() / size, (parted - begin) / n);
    };
    const auto start = [&](CUdeviceptr buffer, std::size_t begin, std::size_t count) {
        RailCall part = call;
        part.begin = begin;
        part.count = count;
        across_.start(part, buffer, stream, inside_.timeout());
    };
    std::size_t gathered = 0;
    const auto finish_and_gather = [&] {
        const std::size_t part = part_at(gathered);
        across_.finish(stream);
        inside_.all_gather(parts_[finished_++ % parts_.size()], out + gathered * size, part,
                           call.type, stream);
        gathered += part * n;
    };
    for (std::size_t begin = 0; begin < parted; begin += part_at(begin) * n) {
        const CUdeviceptr buffer = parts_[started_++ % parts_.size()];
        inside_.reduce_scatter(in + begin * size, buffer, part_at(begin), call.type, op_inside,
                               stream);
        start(buffer, begin, part_at(begin));
        if (started_ - finished_ == Exchange::kDepth) {
            finish_and_gather();
        }
    }
    while (gathered < parted) {
        finish_and_gather();
    }
    if (const std::size_t rest = call.all - parted; rest > 0) {
        const CUdeviceptr buffer = parts_[started_++ % parts_.size()];
        // By packets, which work with any memory.
        inside_.all_reduce(in + parted * size, buffer, rest, call.type, op_inside, stream,
                           Algorithm::kOneShot);
        start(buffer, parted, rest);
        across_.finish(stream);
        ++finished_;
        cu_check(cuMemcpyAsync(out + parted * size, buffer, rest * size, stream),
                 "cuMemcpyAsync(size={})", rest * size);
    }
}

void HierarchicalCommunicator::synchronize(const Stream& stream, std::string_view what) {
    or_tell([&] {
        try {
            inside_.synchronize(stream, what, [&] { across_.throw_if_failed(); });
        } catch (const std::runtime_error&) {
            across_.throw_if_failed();  // the cause, if a kernel gave up because of it
            throw;
        }
        across_.throw_if_failed();
    });
}

}  // namespace symm
