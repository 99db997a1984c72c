#include "labs/05_device_prims/ring/ring_trace.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/rank.hpp"

namespace symm {
namespace {

std::string name_of(const TraceSlice& slice) {
    return slice.event == TraceEvent::kWaitData    ? "wait for data"
           : slice.event == TraceEvent::kWaitSpace ? "wait for space"
                                                   : primitive_name(slice.move);
}

}  // namespace

std::string primitive_name(const Move& move) {
    std::vector<const char*> words;
    if (move.receive) {
        words.push_back(move.received_in_place ? "direct_recv" : "recv");
    }
    if (move.receive && move.source) {
        words.push_back("reduce");
    }
    if (move.output && (move.send || move.source)) {
        words.push_back("copy");
    }
    if (move.send) {
        words.push_back(move.sent_in_place ? "direct_send" : "send");
    }
    return fmt::format("{}", fmt::join(words, "_"));
}

RingTrace::RingTrace(Rank& rank, unsigned channels, std::uint32_t capacity)
    : rank_(rank),
      channels_(channels),
      capacity_(capacity),
      range_(rank, counts_bytes() + sizeof(TraceRecord) * channels * capacity) {
    rank.bootstrap().together("05: trace", [&] { zero(range_.local(), counts_bytes()); });
}

std::size_t RingTrace::counts_bytes() const {
    return (channels_ * sizeof(std::uint32_t) + 127) / 128 * 128;
}

TraceBuffers RingTrace::buffers() const {
    return {range_.at<TraceRecord>(rank_.rank(), counts_bytes()),
            range_.at<std::uint32_t>(rank_.rank()), capacity_};
}

std::vector<TraceSlice> RingTrace::slices_of(int rank) const {
    std::vector<std::uint32_t> counts(channels_);
    copy_to_host(counts.data(), range_.peer(rank), channels_ * sizeof(std::uint32_t));
    std::vector<TraceRecord> records(std::size_t{channels_} * capacity_);
    copy_to_host(records.data(), range_.peer(rank) + counts_bytes(),
                 records.size() * sizeof(TraceRecord));
    std::vector<TraceSlice> slices;
    for (unsigned channel = 0; channel < channels_; ++channel) {
        const TraceRecord* const ring = records.data() + std::size_t{channel} * capacity_;
        const std::uint32_t kept = std::min(counts[channel], capacity_);
        for (std::uint32_t i = counts[channel] - kept; i + 1 < counts[channel]; ++i) {
            const TraceRecord& record = ring[i % capacity_];
            if (record.event != TraceEvent::kEnd) {
                slices.push_back({rank, channel, record.event, record.move, record.received,
                                  record.sent, record.time_ns, ring[(i + 1) % capacity_].time_ns});
            }
        }
    }
    return slices;
}

std::vector<TraceSlice> RingTrace::collect() const {
    std::vector<TraceSlice> all;
    rank_.bootstrap().barrier("05: all records are written");
    rank_.bootstrap().together("05: reading the trace", [&] {
        for (int rank = 0; rank_.rank() == 0 && rank < rank_.size(); ++rank) {
            const std::vector<TraceSlice> slices = slices_of(rank);
            all.insert(all.end(), slices.begin(), slices.end());
        }
    });
    return all;
}

std::vector<std::int64_t> clock_offsets(std::span<const TraceSlice> slices, int ranks) {
    constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> fastest(static_cast<std::size_t>(ranks), kUnknown);  // by sender
    for_steps(slices, ranks, [&](const TraceSlice& from, const TraceSlice& to) {
        auto& of_link = fastest.at(static_cast<std::size_t>(from.rank));
        of_link = std::min(of_link, static_cast<std::int64_t>(to.end_ns - from.end_ns));
    });
    const std::int64_t trip =
        std::accumulate(fastest.begin(), fastest.end(), std::int64_t{0}) / ranks;
    std::vector<std::int64_t> ahead{0};
    for (int rank = 1; rank < ranks; ++rank) {
        ahead.push_back(ahead.back() + fastest.at(static_cast<std::size_t>(rank) - 1) - trip);
    }
    return ahead;
}

std::vector<TraceSlice> record_call(Rank& rank, RingCommunicator& ring, const Stream& stream,
                                    RingRequest call) {
    constexpr int kCalls = 16;
    const auto recorded = [&](RingRequest request, int calls) {
        const RingTrace trace(rank, ring.channels_of(request));
        request.trace = trace.buffers();
        rank.bootstrap().together("05: recorded calls", [&] {
            for (int i = 0; i < calls; ++i) {
                ring.queue(request, stream.get());
            }
            ring.synchronize(stream, "recorded calls");
        });
        return trace.collect();
    };
    // A line of 128 bytes per rank, so that no step is empty.
    const DeviceMemory lines(128 * static_cast<std::size_t>(rank.size()));
    RingRequest small{.protocol = call.protocol, .type = DataType::kUint8};
    small.input = small.output = lines.address();
    small.count = lines.size();
    const std::vector<TraceSlice> clocks = recorded(small, kCalls);
    std::vector<TraceSlice> slices = recorded(call, 1);
    if (!slices.empty() && !is_emulated()) {  // emulated GPUs have one clock
        const std::vector<std::int64_t> ahead = clock_offsets(clocks, rank.size());
        for (TraceSlice& slice : slices) {
            slice.begin_ns -= ahead.at(static_cast<std::size_t>(slice.rank));
            slice.end_ns -= ahead.at(static_cast<std::size_t>(slice.rank));
        }
    }
    return slices;
}

std::string chrome_trace(std::span<const TraceSlice> slices, int ranks) {
    const std::uint64_t start =
        slices.empty() ? 0 : std::ranges::min(slices, {}, &TraceSlice::begin_ns).begin_ns;
    const auto us = [start](std::uint64_t ns) { return static_cast<double>(ns - start) / 1e3; };
    std::vector<std::string> events;
    for (int rank = 0; rank < ranks; ++rank) {
        events.push_back(fmt::format(
            R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})", rank));
    }
    for (const TraceSlice& slice : slices) {
        events.push_back(fmt::format(
            R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
            R"("args":{{"from rank":{},"step received":{},"to rank":{},"step sent":{}}}}})",
            name_of(slice), slice.rank, slice.channel, us(slice.begin_ns),
            us(slice.end_ns) - us(slice.begin_ns), (slice.rank + ranks - 1) % ranks, slice.received,
            (slice.rank + 1) % ranks, slice.sent));
    }
    int id = 0;
    for_steps(slices, ranks, [&](const TraceSlice& from, const TraceSlice& to) {
        const auto flow = [&](const char* phase, const TraceSlice& slice, std::uint64_t ns) {
            events.push_back(fmt::format(
                R"({{{},"name":"step","cat":"step","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", phase,
                id, slice.rank, slice.channel, us(ns)));
        };
        flow(R"("ph":"s")", from, from.begin_ns);
        // "bp":"e" ties the arrow to the slice around this time, not to the next one.
        flow(R"("ph":"f","bp":"e")", to, std::max(to.begin_ns, to.end_ns - 1));
        ++id;
    });
    return fmt::format("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n",
                       fmt::join(events, ",\n"));
}

}  // namespace symm
