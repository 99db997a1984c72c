#include "labs/06_allreduce/machines/nccl_exchange.hpp"

#include <stdexcept>
#include <vector>

#include "common/sys/deadline.hpp"
#include "common/sys/log.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot_launch.hpp"
#include "labs/06_allreduce/machines/staged_exchange.hpp"

namespace symm {
namespace {

NcclLibrary::UniqueId common_id(const NcclLibrary& library, Rail& rail) {
    const auto mine =
        rail.machine() == 0 ? NcclCommunicator::unique_id(library) : NcclLibrary::UniqueId{};
    std::vector<NcclLibrary::UniqueId> ids(static_cast<std::size_t>(rail.machines()));
    rail.all_gather(reinterpret_cast<const std::byte*>(&mine),
                    reinterpret_cast<std::byte*>(ids.data()), sizeof mine, Deadline::standard());
    return ids[0];
}

}  // namespace

NcclExchange::NcclExchange(const Rank& rank, const NcclLibrary& library, Rail& rail)
    : rank_(rank.rank()),
      machine_(rail.machine()),
      machines_(rail.machines()),
      communicator_(library, common_id(library, rail), machines_, machine_),
      epochs_(sizeof(Epochs)) {}

void NcclExchange::require_possible(std::size_t, CUstream) {
    throw_if_failed();
}

void NcclExchange::start(const RailCall& call, CUdeviceptr buffer, CUstream stream,
                         const simt::Timeout& kernels) {
    throw_if_failed();
    const ReduceOp op = call.op == ReduceOp::kAvg ? ReduceOp::kSum : call.op;
    communicator_.all_reduce(buffer, buffer, call.count, static_cast<int>(call.type),
                             static_cast<int>(op), stream);
    if (call.op == ReduceOp::kAvg) {  // one shot of a single rank divides the sum
        launch_one_shot(stream, {.blocks = 32, .threads = 256},
                        {{{{call.type, call.op}, buffer, buffer, call.count},
                          Reduction(call.op, call.ranks, is_signed_integer(call.type)),
                          timeout_.timeout(),
                          0,
                          1},
                         epochs_.as<Epochs>(),
                         {},
                         1});
    }
    launch_require_part(stream, timeout_.timeout(), kernels, rank_);
}

void NcclExchange::throw_if_failed() {
    if (!failure_.empty()) {
        throw std::runtime_error(failure_);
    }
    communicator_.throw_async_error();
}

void NcclExchange::fail(std::string_view text) noexcept {
    log::info("aborting NCCL's communicator: {}", text);
    if (failure_.empty()) {
        failure_ = text;
    }
    timeout_.abort();  // first
    communicator_.abort();
}

}  // namespace symm
