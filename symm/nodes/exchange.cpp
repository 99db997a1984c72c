#include "symm/nodes/exchange.hpp"

#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"
#include "common/sys/log.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {
namespace {

constexpr std::size_t kDoneBytes = 64;
/// How much longer a kernel waits than the thread, whose error tells more.
constexpr std::chrono::seconds kGrace{5};

void order(CUstream earlier, CUstream later, const Event& event) {
    event.record(earlier);
    event.make_wait(later);
}

void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    cu_check(cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync(size={})", bytes);
}

}  // namespace

std::size_t Exchange::part_bytes() {
    return is_emulated() ? std::size_t{4} << 10 : std::size_t{4} << 20;
}

Exchange::Exchange(Rank& rank, std::unique_ptr<Rail> rail, std::chrono::nanoseconds limit)
    : rank_(rank.rank()),
      bootstrap_(rank.bootstrap()),
      device_(rank.gpu()),
      rail_(std::move(rail)),
      // Each machine's chunk may be one element longer than its share.
      stage_bytes_(part_bytes() + 8 * static_cast<std::size_t>(rail_->machines())),
      limit_(limit),
      timeout_(limit + kGrace),
      memory_(kDoneBytes + kDepth * stage_bytes_),
      arrived_(stage_bytes_) {
    *thread_ = std::thread([this] { run(); });
}

Exchange::~Exchange() {
    if (!creator_.is_this_one()) {
        return;
    }
    if (started_ != finished_ || std::uncaught_exceptions() > 0) {
        fail(fmt::format("rank {} of machine {} has ended", rank_, machine()));
    }
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_->notify_all();
    thread_->join();
    try {
        out_.synchronize("copies to host memory");
        in_.synchronize("copies from host memory");
    } catch (const std::exception& error) {
        log::error("{}", error.what());
    }
}

void Exchange::require_possible(CUstream stream) {
    throw_if_failed();
    refuse_unless(!is_captured(stream),
                  "a call that goes through host memory cannot be captured: its thread would not "
                  "notice the graph's launches");
}

void Exchange::start(const RailCall& call, CUdeviceptr buffer, CUstream stream,
                     const simt::Timeout& kernels) {
    require_possible(stream);
    refuse_unless(call.count <= part_bytes() / size_of(call.type),
                  "a part of {} x {} has more than {} bytes", call.count, name_of(call.type),
                  part_bytes());
    const std::size_t bytes = call.count * size_of(call.type);
    Part part{started_ + 1, call};
    const auto stage = reinterpret_cast<CUdeviceptr>(stage_of(part.number));
    order(stream, out_.get(), ready_);
    copy(stage, buffer, bytes, out_.get());
    copy(reinterpret_cast<CUdeviceptr>(gave_up(part.number)),
         reinterpret_cast<CUdeviceptr>(kernels.gave_up), sizeof(std::uint32_t), out_.get());
    order(out_.get(), in_.get(), part.copied_out);
    launch_await_part(in_.get(), timeout_.timeout(), kernels, rank_, memory_.as<std::uint32_t>(),
                      part.number);
    copy(buffer, stage, bytes, in_.get());
    copied_in_[part.number % kDepth].record(in_.get());
    {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(part));
    }
    ++started_;  // last: a part that could not be queued is not counted
    changed_->notify_all();
}

void Exchange::finish(CUstream stream) {
    copied_in_[(finished_ + 1) % kDepth].make_wait(stream);
    ++finished_;
}

std::uint32_t* Exchange::gave_up(std::uint32_t part) const {
    return memory_.as<std::uint32_t>() + 1 + part % kDepth;
}

std::byte* Exchange::stage_of(std::uint32_t part) const {
    return memory_.as<std::byte>() + kDoneBytes + part % kDepth * stage_bytes_;
}

void Exchange::throw_if_failed() {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) {
        throw std::runtime_error(failure_);
    }
}

void Exchange::fail(std::string_view text) noexcept {
    if (!creator_.is_this_one()) {
        return;
    }
    bool uses_stage = false;
    {
        const std::lock_guard lock(mutex_);
        if (failure_.empty()) {
            failure_ = text;
        }
        uses_stage = uses_stage_;
    }
    rail_->fail(text);
    if (!uses_stage) {  // else the thread aborts, since it now leaves the rail
        timeout_.abort();
    }
    changed_->notify_all();
}

void Exchange::run() {
    try {
        device_.make_current();
        const RelaxedCapture relaxed;  // a user may be capturing in mode global
        while (const auto part = next_part()) {
            if (!wait_for_copy(*part)) {
                break;
            }
            if (*gave_up(part->number) != 0) {  // the communicator's own error says why
                const auto reason = bootstrap_.async_error("its part");
                rail_->fail(reason ? reason->what()
                                   : fmt::format("rank {} of machine {} gave up before it had made "
                                                 "its part",
                                                 rank_, machine()));
                break;
            }
            if (!use_stage(true)) {
                break;
            }
            exchange(*part);
            use_stage(false);
            simt::store(memory_.as<std::uint32_t>(), part->number, simt::Order::kRelease);
        }
    } catch (const std::exception& error) {
        fail(fmt::format("rank {} of machine {}: {}", rank_, machine(), error.what()));
    }
    timeout_.abort();
}

bool Exchange::use_stage(bool uses) {
    const std::lock_guard lock(mutex_);
    uses_stage_ = uses;
    return failure_.empty();
}

std::optional<Exchange::Part> Exchange::next_part() {
    std::unique_lock lock(mutex_);
    changed_->wait(lock, [&] { return ends_ || !queue_.empty() || !failure_.empty(); });
    if (ends_ || !failure_.empty()) {
        return {};
    }
    Part part = std::move(queue_.front());
    queue_.pop_front();
    return part;
}

bool Exchange::wait_for_copy(const Part& part) {
    while (true) {
        const CUresult result = cuEventQuery(part.copied_out.get());
        if (result == CUDA_SUCCESS) {
            return true;
        }
        if (result != CUDA_ERROR_NOT_READY) {
            cu_check(result, "cuEventQuery()");
        }
        {
            const std::lock_guard lock(mutex_);
            if (ends_ || !failure_.empty()) {
                return false;
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void Exchange::exchange(const Part& part) {
    std::byte* const stage = stage_of(part.number);
    const Deadline deadline = Deadline::after(limit_);
    require_same(part.call, deadline);
    const auto all = static_cast<std::size_t>(machines());
    const std::size_t count = (part.call.count + all - 1) / all;
    const std::size_t chunk = count * size_of(part.call.type);
    rail_->all_to_all(stage, arrived_.data(), chunk, deadline);
    std::vector<const std::byte*> sources;
    for (std::size_t m = 0; m < all; ++m) {
        sources.push_back(arrived_.data() + m * chunk);
    }
    std::byte* const own = stage + static_cast<std::size_t>(machine()) * chunk;
    reduce_on_host(part.call, sources, own, count);
    rail_->all_gather(own, stage, chunk, deadline);
}

void Exchange::require_same(const RailCall& call, Deadline deadline) {
    std::vector<RailCall> calls(static_cast<std::size_t>(machines()));
    rail_->all_gather(reinterpret_cast<const std::byte*>(&call),
                      reinterpret_cast<std::byte*>(calls.data()), sizeof call, deadline);
    const auto text = [&](const RailCall& one) {
        return fmt::format("call {} ({} x {}, {}; element {} and {} after it)", one.number, one.all,
                           name_of(one.type), name_of(one.op), one.begin, one.count - 1);
    };
    for (std::size_t m = 1; m < calls.size(); ++m) {
        if (calls[m] != calls[0]) {
            throw std::runtime_error(
                fmt::format("machine 0 makes {}, machine {} makes {}: all must "
                            "make the same calls",
                            text(calls[0]), m, text(calls[m])));
        }
    }
}

}  // namespace symm
