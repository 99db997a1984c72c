#include "tools/compare/nccl_comparison.hpp"

#include <algorithm>
#include <vector>

#include "common/nccl/turn_timer.hpp"
#include "common/sys/log.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"

namespace symm {
namespace {

/// The number of calls that take about 20 ms.
int calls_per_turn(double microseconds) {
    return static_cast<int>(std::clamp(20e3 / microseconds, 5.0, 200.0));
}

}  // namespace

std::optional<double> Measured::ratio() const {
    if (!nccl) {
        return {};
    }
    return std::min(*nccl, nccl_symmetric.value_or(*nccl)) / ours;
}

/// Memory of one segment, for a window. NCCL 2.28 registers only the first segment of a window,
/// and its kernels access memory beyond the end of that segment. Communicator::allocate() makes
/// several segments above 256 MiB.
NcclComparison::Memory NcclComparison::one_segment(std::size_t bytes) {
    const auto give_back = [](void* memory) {
        try {
            mem_free(memory);
        } catch (const std::exception& error) {
            log::error("{}", error.what());
        }
    };
    return {mem_alloc(bytes, bytes), give_back};
}

NcclComparison::NcclComparison(Rank& rank, Communicator& communicator,
                               const ComparisonOptions& options)
    : rank_(rank),
      communicator_(communicator),
      options_(options),
      in_memory_(one_segment(std::max<std::size_t>(options.most_bytes, 1))),
      out_memory_(one_segment(std::max<std::size_t>(options.most_bytes, 1))),
      in_(reinterpret_cast<CUdeviceptr>(in_memory_.get())),
      out_(reinterpret_cast<CUdeviceptr>(out_memory_.get())),
      verifier_(rank.rank(), rank.size()) {
    if (options.windows != 0) {
        our_windows_ = time_together(rank, [&] {
            for (CUdeviceptr* buffer : {&in_, &out_}) {
                *buffer = communicator.register_memory(*buffer, options.most_bytes);
            }
        });
    }
    find_nccl();
}

void NcclComparison::find_nccl() {
    why_no_nccl_ = options_.nccl ? "" : "as requested";
    library_ = load_nccl(rank_, why_no_nccl_);
    if (library_ == nullptr) {
        return;
    }
    nccl_set_up_.first = time_together(rank_, [&] { nccl_ = connect_nccl(rank_, *library_); });
    nccl_set_up_.another =
        time_together(rank_, [&] { nccl_symmetric_ = connect_nccl(rank_, *library_); });
    bool registered = options_.windows != 0;
    NcclLibrary::Window in = nullptr;
    NcclLibrary::Window out = nullptr;
    nccl_set_up_.windows = time_together(rank_, [&] {
        if (!registered) {
            return;
        }
        try {
            in = nccl_symmetric_->register_window(in_, options_.most_bytes);
            out = nccl_symmetric_->register_window(out_, options_.most_bytes);
        } catch (const std::exception& error) {
            log::info("skipping NCCL's symmetric path: {}", error.what());
            registered = false;
        }
    });
    const auto all = rank_.bootstrap().allgather("nccl windows", static_cast<int>(registered));
    if (std::ranges::find(all, 0) != all.end()) {
        nccl_symmetric_.reset();
    }
    find_nccl_device(in, out);
}

void NcclComparison::find_nccl_device(NcclLibrary::Window in, NcclLibrary::Window out) {
    const Arithmetic& arithmetic = options_.arithmetic;
    if (arithmetic.collective != Collective::kAllReduce) {
        return;
    }
    try {
        if (nccl_symmetric_ == nullptr) {
            throw std::runtime_error("it needs NCCL's symmetric windows");
        }
        nccl_device_ = nccl_device_call(
            *nccl_symmetric_,
            {in, out, arithmetic.type, arithmetic.op, rank_.size(),
             communicator_.two_shot_shape(arithmetic.type,
                                          options_.most_bytes / size_of(arithmetic.type))});
    } catch (const std::exception& error) {
        why_no_nccl_device_ = error.what();
    }
    for (const std::string& reason :
         rank_.bootstrap().allgather_text("nccl device", why_no_nccl_device_)) {
        if (!reason.empty()) {
            why_no_nccl_device_ = reason;
            nccl_device_ = nullptr;
        }
    }
}

/// Overwrites the output, unless it is the input (in place).
void NcclComparison::poison(const Call& call) {
    if (!call.in_place) {
        verifier_.poison(stream_, options_.arithmetic, call.at.out, call.count);
    }
}

void NcclComparison::check_call(const Call& call) {
    verifier_.fill(stream_, options_.arithmetic, call.at.in, call.count);
    poison(call);
    rank_.bootstrap().together("checked call", [&] {
        call.make();
        communicator_.synchronize(stream_, "the checked call");
        verifier_.check(stream_, options_.arithmetic, call.at.out, call.count);
    });
}

double NcclComparison::time_turn(const Call& call, int iterations) {
    const TurnTimer timer{
        rank_,
        stream_,
        iterations,
        options_.graph_launches,
        [this](std::string_view what) { communicator_.synchronize(stream_, what); },
        options_.warm_ups};
    const double time = timer.time(call.make, [&] { poison(call); });
    // In place, the timed calls have added up their own results, so one more call is made and
    // checked.
    if (call.in_place) {
        check_call(call);
    } else {
        rank_.bootstrap().together("timed result", [&] {
            verifier_.check(stream_, options_.arithmetic, call.at.out, call.count);
        });
    }
    return time;
}

void NcclComparison::queue(NcclCommunicator& nccl, std::size_t count, const Verifier::Places& at) {
    const int type = static_cast<int>(options_.arithmetic.type);
    const int op = static_cast<int>(options_.arithmetic.op);
    switch (options_.arithmetic.collective) {
        case Collective::kReduceScatter:
            return nccl.reduce_scatter(at.in, at.out, count, type, op, stream_.get());
        case Collective::kAllGather:
            return nccl.all_gather(at.in, at.out, count, type, stream_.get());
        case Collective::kBroadcast:
            return nccl.broadcast(at.in, at.out, count, type, options_.arithmetic.root,
                                  stream_.get());
        case Collective::kReduce:
            return nccl.reduce(at.in, at.out, count, type, op, options_.arithmetic.root,
                               stream_.get());
        default:
            return nccl.all_reduce(at.in, at.out, count, type, op, stream_.get());
    }
}

Measured NcclComparison::run(std::size_t count, bool in_place, Algorithm algorithm) {
    Measured measured;
    const DataType type = options_.arithmetic.type;
    const auto at = verifier_.places(options_.arithmetic, in_, in_place ? in_ : out_, count);
    // The candidates, and where their medians go.
    std::vector<Call> calls;
    std::vector<std::optional<double>*> times;
    const auto add = [&](std::optional<double>& time, std::function<void()> make) {
        calls.push_back({count, at, in_place, std::move(make)});
        times.push_back(&time);
    };
    std::optional<double> ours;
    add(ours, [&] {
        measured.plan = communicator_.call({options_.arithmetic, at.in, at.out, count},
                                           stream_.get(), algorithm);
    });
    if (nccl_) {
        add(measured.nccl, [=, this] { queue(*nccl_, count, at); });
    }
    if (nccl_symmetric_) {
        add(measured.nccl_symmetric, [=, this] { queue(*nccl_symmetric_, count, at); });
    }
    if (nccl_device_) {
        const LaunchShape shape = communicator_.two_shot_shape(type, count);
        add(measured.nccl_device,
            [=, this] { nccl_device_(stream_.get(), shape, count, in_place); });
    }
    check_call(calls[0]);
    measured.iterations =
        options_.iterations != 0 ? options_.iterations : calls_per_turn(time_turn(calls[0], 5));
    const std::vector<double> medians =
        medians_in_turn(calls.size(), options_.rounds,
                        [&](std::size_t c) { return time_turn(calls[c], measured.iterations); });
    for (std::size_t c = 0; c < calls.size(); ++c) {
        *times[c] = medians[c];
    }
    measured.ours = ours.value();
    return measured;
}

}  // namespace symm
