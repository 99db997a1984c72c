#include "labs/05_device_prims/ring/trace_files.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

namespace symm {
namespace {

std::string name_of(const TraceSlice& slice) {
    switch (slice.event) {
        case TraceEvent::kWaitData:
            return "wait for data";
        case TraceEvent::kWaitSpace:
            return "wait for space";
        case TraceEvent::kMove:
        case TraceEvent::kEnd:
            break;
    }
    return primitive_name(slice.move);
}

struct Span {
    std::uint64_t begin_ns = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t end_ns = 0;
};

Span span_of(std::span<const TraceSlice> slices) {
    Span span;
    for (const TraceSlice& slice : slices) {
        span.begin_ns = std::min(span.begin_ns, slice.begin_ns);
        span.end_ns = std::max(span.end_ns, slice.end_ns);
    }
    return span;
}

std::string_view color_of(const TraceSlice& slice) {
    if (slice.event != TraceEvent::kMove) {
        return slice.event == TraceEvent::kWaitData ? "#dddddd" : "#f4b183";
    }
    return !slice.move.receive ? "#b39ddb" : slice.move.source ? "#8ab4e8" : "#9ccc88";
}

}  // namespace

std::string chrome_trace(std::span<const TraceSlice> slices, int ranks) {
    const std::uint64_t start = span_of(slices).begin_ns;
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

std::string trace_picture(std::span<const TraceSlice> slices, int ranks, unsigned channels) {
    constexpr double kLeft = 130;
    constexpr double kWidth = 1050;
    constexpr double kRow = 26;
    constexpr double kTop = 34;
    constexpr double kGap = 14;  // between channels
    unsigned shown = 0;
    for (const TraceSlice& slice : slices) {
        shown = std::max(shown, slice.channel + 1);
    }
    shown = std::min(shown, channels);
    const auto [begin, end] = span_of(slices);
    const double all_us = static_cast<double>(std::max<std::uint64_t>(end - begin, 1)) / 1e3;
    const auto x = [&, begin = begin](std::uint64_t ns) {
        return kLeft + static_cast<double>(ns - begin) / 1e3 / all_us * kWidth;
    };
    const auto y = [&](int rank, unsigned channel) {
        return kTop + channel * (ranks * kRow + kGap) + rank * kRow;
    };
    const double height = y(0, shown) + 40;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
        kLeft + kWidth + 20, height);
    const auto text = [&](double at_x, double at_y, std::string_view what) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at_x, at_y, what);
    };
    const auto box = [&](double at_x, double at_y, double width, std::string_view color,
                         std::string_view title) {
        svg += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
            "stroke=\"#555\" stroke-width=\"0.4\"><title>{}</title></rect>\n",
            at_x, at_y, width, kRow - 6, color, title);
    };

    double legend = kLeft;
    for (const auto& [slice, what] : {
             std::pair{TraceSlice{.event = TraceEvent::kWaitData}, "wait for data"},
             {TraceSlice{.event = TraceEvent::kWaitSpace}, "wait for space"},
             {TraceSlice{.event = TraceEvent::kMove, .move = {.send = true}}, "send"},
             {TraceSlice{.event = TraceEvent::kMove, .move = {.receive = true, .source = true}},
              "receive and reduce"},
             {TraceSlice{.event = TraceEvent::kMove, .move = {.receive = true}},
              "receive and pass on"},
         }) {
        box(legend, 6, 14, color_of(slice), what);
        text(legend + 19, 20, what);
        legend += 150;
    }
    for (unsigned channel = 0; channel < shown; ++channel) {
        for (int rank = 0; rank < ranks; ++rank) {
            text(8, y(rank, channel) + 14, fmt::format("channel {}, rank {}", channel, rank));
        }
    }
    for (const TraceSlice& slice : slices) {
        if (slice.channel >= shown) {
            continue;
        }
        const double width = x(slice.end_ns) - x(slice.begin_ns);
        const std::string name = name_of(slice);
        box(x(slice.begin_ns), y(slice.rank, slice.channel), width, color_of(slice),
            fmt::format("{}, {:.2f} us", name,
                        static_cast<double>(slice.end_ns - slice.begin_ns) / 1e3));
        if (width > 6.0 * static_cast<double>(name.size())) {
            text(x(slice.begin_ns) + 3, y(slice.rank, slice.channel) + 14, name);
        }
    }
    for_steps(slices, ranks, [&](const TraceSlice& from, const TraceSlice& to) {
        if (from.channel < shown) {
            // If the receiver waited first, its slice begins when the data is there.
            const std::uint64_t there = to.begin_ns >= from.end_ns ? to.begin_ns : to.end_ns;
            svg += fmt::format(
                "<line x1=\"{:.2f}\" y1=\"{:.1f}\" x2=\"{:.2f}\" y2=\"{:.1f}\" stroke=\"#c00\" "
                "stroke-width=\"0.6\"/>\n",
                x(from.end_ns), y(from.rank, from.channel) + kRow / 2 - 3, x(there),
                y(to.rank, to.channel) + kRow / 2 - 3);
        }
    });
    // A tick is 1, 2 or 5 times a power of ten.
    double tick = std::pow(10, std::floor(std::log10(all_us)));
    tick /= all_us < 2 * tick ? 5 : all_us < 5 * tick ? 2 : 1;
    for (int i = 0; i * tick <= all_us; ++i) {
        const double at = kLeft + kWidth * i * tick / all_us;
        svg += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#aaa\" "
            "stroke-width=\"0.3\"/>\n",
            at, kTop - 4, height - 36);
        text(at - 8, height - 22, fmt::format("{:g}", i * tick));
    }
    text(kLeft, height - 6, "microseconds");
    return svg + "</svg>\n";
}

}  // namespace symm
