// AllToAll in every execution: by counts, equal parts, both ways, elements of 1, 2, 4 and 8 bytes.

#include "../all_to_all_kernel.hpp"

#include <array>
#include <bit>
#include <string>
#include <vector>

#include <tools/explore/pairs.hpp>

#include "scenes.hpp"

namespace symm::collectives {
namespace {

/// Elements of a part, at most: two packets, the second not full if an element is shorter.
template <class T>
constexpr std::size_t kPart = sizeof(T) == 1   ? 11
                              : sizeof(T) == 4 ? 3
                                               : 2;

/// How many elements rank `from` has for rank `to` in a call.
using Counts = std::function<std::uint32_t(int from, int to, unsigned call)>;

struct Calls {
    int ranks;
    unsigned calls;
    symm::explore::Shape shape;
    Counts counts;  ///< Null: equal parts.
    bool windows = false;
    std::uint32_t last = 0;  ///< The number of the call before the first.
    /// Each bank's slots for data have packets of 2^32 calls ago, with the flag of its last call.
    bool old_packets = false;
    bool overlap = false;  ///< Each call is a dependent launch, with its own buffers.
    std::size_t part = 0;  ///< Elements of a part, at most; 0: kPart.
    bool in_turn = false;  ///< Every second call is by packets.
    bool paced = true;     ///< Stores into windows have turns.

    bool in_windows(unsigned call) const { return windows && !(in_turn && call % 2 == 1); }
};

template <class T>
struct Buffers {
    T *in, *out;
    std::uint32_t *counts, *received;
};

template <class T>
T value(int from, int to, unsigned call, std::size_t i) {
    return static_cast<T>(1 + static_cast<unsigned>(from) + 10U * static_cast<unsigned>(to) +
                          100U * call + 1000U * i);
}

void put_old_packets(const Memory& memory, const Calls& calls) {
    for (int rank = 0; rank < calls.ranks; ++rank) {
        for (std::size_t i = 0; i < memory.slots_of_rank(); ++i) {
            const bool is_in_second_bank = i >= memory.slots_of_rank() / 2;
            const std::uint32_t flag = calls.calls - (calls.calls % 2 == is_in_second_bank ? 0 : 1);
            if (const std::size_t slot = i % memory.per_sender; slot == 1 || slot == 2) {
                reinterpret_cast<symm::Packet&>(memory.slots.of(rank)[i]) = {1, flag, 1, flag};
            }
        }
    }
}

template <class T>
void fill_scene(Scene& scene, const Calls& calls) {
    const std::size_t part = calls.part != 0 ? calls.part : kPart<T>;
    const Memory memory(scene, calls.ranks,
                        std::bit_ceil(static_cast<unsigned>(part * sizeof(T) / 8) + 2));
    if (calls.old_packets) {
        put_old_packets(memory, calls);
    }
    const std::size_t elements = static_cast<std::size_t>(calls.ranks) * part;
    const auto count = [=](int from, int to, unsigned c) {
        return calls.counts ? calls.counts(from, to, c) : static_cast<std::uint32_t>(part);
    };
    for (int rank = 0; rank < calls.ranks; ++rank) {
        std::vector<Buffers<T>> buffers;
        for (unsigned i = 0; i < (calls.overlap ? calls.calls : 1); ++i) {
            buffers.push_back({scene.allocate<T>(elements, "in", rank),
                               scene.allocate<T>(elements, "out", rank),
                               scene.allocate<std::uint32_t>(kMost, "counts", rank),
                               scene.allocate<std::uint32_t>(kMost, "received", rank)});
        }
        const auto of_call = [=](unsigned c) { return buffers[c % buffers.size()]; };
        const auto [in, out, counts, received] = buffers.front();
        AllToAllWindowsParams call{{memory.call(scene, rank, in, out, part, calls.last), sizeof(T),
                                    calls.counts ? counts : nullptr, received},
                                   memory.meeting(rank, out, out),
                                   memory.barrier(rank),
                                   memory.turns,
                                   calls.paced};
        call.stride = part * sizeof(T);
        const auto fill = [=](unsigned c) {
            const auto [in, out, counts, received] = of_call(c);
            for (std::size_t i = 0; i < elements; ++i) {
                const auto p = static_cast<int>(i / part);
                counts[p] = count(rank, p, c);
                received[p] = 99;
                in[i] = value<T>(rank, p, c, i % part);
                out[i] = 0;
            }
        };
        const auto kernel = [=](unsigned c, const ThreadBlock& block) {
            const auto [in, out, counts, received] = of_call(c);
            AllToAllWindowsParams mine = call;
            mine.in = reinterpret_cast<CUdeviceptr>(in);
            mine.out = reinterpret_cast<CUdeviceptr>(out);
            mine.counts = calls.counts ? counts : nullptr;
            mine.received = received;
            calls.in_windows(c) ? AllToAllWindows<kMost>{mine}(block)
                                : AllToAllPackets<kMost>{mine}(block);
        };
        const auto check = [=](unsigned c, bool gave_up) {
            if (gave_up && calls.in_windows(c)) {
                return;  // peers may have stored anything
            }
            const auto [in, out, counts, received] = of_call(c);
            for (std::size_t i = 0; i < elements; ++i) {
                const auto p = static_cast<int>(i / part);
                const std::uint32_t sent = count(p, rank, c);
                if (calls.counts && !gave_up && received[p] != sent) {
                    symm::explore::fail("a received count is wrong");
                }
                const T expected = i % part < sent ? value<T>(p, rank, c, i % part) : T{0};
                if (out[i] != expected && !(gave_up && out[i] == 0)) {
                    symm::explore::fail(gave_up
                                            ? "a rank that gave up has stored a wrong element"
                                            : "an element is wrong: " + std::to_string(i % part) +
                                                  " of rank " + std::to_string(p) + "'s part");
                }
            }
        };
        (calls.overlap ? launch_overlapping : launch_calls)(scene, rank, calls.shape, call.timeout,
                                                            calls.calls, {fill, kernel, check});
    }
}

template <class T = std::uint64_t>
Protocol scene(const std::string& name, Calls calls) {
    calls.shape.shared_bytes = AllToAllWindows<kMost>::kSharedBytes;
    return {"all_to_all/" + name, [=](Scene& scene) { fill_scene<T>(scene, calls); },
            calls.ranks <= 3};
}

/// Where a part begins, beyond the 4 GB for which no scene has room.
void place_far_part(Scene& scene) {
    scene.launch(0, {}, [](const ThreadBlock&) {
        AllToAllParams call{
            {{symm::Reduction(symm::ReduceOp::kSum, 4), {}, 0, 4}, {}, {}}, 1, nullptr, nullptr};
        call.stride = std::size_t{3} << 30;
        if (reinterpret_cast<CUdeviceptr>(call.part(16, 3)) != 16 + 3 * call.stride) {
            symm::explore::fail("a part's place has too few bits");
        }
    });
}

/// A type's scenes: both ways, in both of their forms.
template <class T>
void add_type(std::vector<Protocol>& scenes, const std::string& type, const Counts& counts) {
    const symm::explore::Shape two{.threads = 2};
    scenes.push_back(scene<T>("equal/" + type + "/2x1", {2, 2, {}, {}}));
    scenes.push_back(scene<T>("equal/" + type + "/2x2", {2, 2, two, {}}));
    scenes.push_back(scene<T>("counts/" + type + "/2x1", {2, 3, {}, counts}));
    scenes.push_back(scene<T>("counts/" + type + "/2x2", {2, 3, two, counts}));
    scenes.push_back(scene<T>("windows/" + type + "/2x1", {2, 2, {}, counts, true}));
    scenes.push_back(scene<T>("windows/" + type + "/2x2", {2, 2, two, counts, true}));
}

/// 0, 1, 2, or more than fit.
std::uint32_t mixed(int from, int to, unsigned call) {
    return (static_cast<unsigned>(from) + 2 * static_cast<unsigned>(to) + call) % 4;
}
/// Of up to twelve elements.
std::uint32_t uneven(int from, int to, unsigned call) {
    return (5 + static_cast<unsigned>(from) + 3 * static_cast<unsigned>(to) + 4 * call) % 13;
}
/// In one direction nothing.
std::uint32_t one_way(int from, int to, unsigned call) {
    return from < to && call % 2 == 0 ? 2 : 0;
}
std::uint32_t upwards(int from, int to, unsigned) {
    return from < to ? 2 : 0;
}
std::uint32_t all(int, int, unsigned) {
    return 2;
}
std::uint32_t none(int, int, unsigned) {
    return 0;
}
/// So many more than fit that their bytes are 2^32.
std::uint32_t huge(int, int, unsigned) {
    return 0x20000000;
}
/// Nothing, and in the last two of eight calls all: one with each bank.
std::uint32_t last_are_full(int, int, unsigned call) {
    return call >= 6 ? 2 : 0;
}

/// Every two values of these properties meet in a scene.
template <class T>
void add_rule(std::vector<Protocol>& scenes) {
    struct Who {
        std::string name;
        int ranks;
        symm::explore::Shape shape;
    };
    const std::vector<Who> who = {
        {"2x1", 2, {}},
        {"2x2", 2, {.threads = 2}},
        {"2x3", 2, {.threads = 3}},
        {"2x1x2", 2, {.blocks = 2}},
        {"3x1", 3, {}},
        {"3x2", 3, {.threads = 2}},
        {"3x1x2", 3, {.blocks = 2}},
    };
    struct Pattern {
        std::string name;
        std::function<std::uint32_t(unsigned from, unsigned to, unsigned call, unsigned part)> of;
    };
    const std::vector<Pattern> patterns = {
        {"equal", {}},
        {"mixed",
         [](auto from, auto to, auto c, auto part) { return (from + 2 * to + c) % (part + 2); }},
        {"up", [](auto from, auto to, auto, auto part) { return from < to ? part : 0; }},
        {"down", [](auto from, auto to, auto, auto part) { return from > to ? part : 0; }},
        {"full", [](auto, auto, auto, auto part) { return part; }},
        {"now_and_then", [](auto from, auto, auto c, auto part) { return (from + c) % 2 * part; }},
    };
    constexpr std::size_t kUnit = 8 / sizeof(T);  // the elements of a packet
    const std::array<std::size_t, 4> parts = {1, kUnit, kUnit + 1, 3 * kUnit};
    const std::array<std::uint32_t, 6> last = {0, 1, 2, 3, 5, ~2U};
    enum Property { kWho, kPattern, kElements, kLast, kWindows, kOverlap };
    for (const symm::explore::Setting& s : symm::explore::every_pair(
             {who.size(), patterns.size(), parts.size(), last.size(), 3, 2}, sizeof(T))) {
        const auto& [name, ranks, shape] = who[s[kWho]];
        const Pattern& pattern = patterns[s[kPattern]];
        const auto part = static_cast<unsigned>(parts[s[kElements]]);
        Calls calls{ranks, ranks == 2 ? 3U : 2U, shape, {}, s[kWindows] != 0, last[s[kLast]]};
        calls.in_turn = s[kWindows] == 2;
        calls.overlap = s[kOverlap] != 0 && !calls.windows;
        calls.part = part;
        if (pattern.of) {
            calls.counts = [=, of = pattern.of](int from, int to, unsigned c) {
                return of(static_cast<unsigned>(from), static_cast<unsigned>(to), c, part);
            };
        }
        Protocol one = scene<T>(std::string("rule/") +
                                    (calls.in_turn   ? "both/"
                                     : calls.windows ? "windows/"
                                                     : "packets/") +
                                    name + '/' + pattern.name + '/' + std::to_string(part) + 'x' +
                                    std::to_string(sizeof(T)) + "/after" +
                                    std::to_string(static_cast<int>(calls.last)) +
                                    (calls.overlap ? "/overlap" : ""),
                                calls);
        one.sample = 10;
        scenes.push_back(std::move(one));
    }
}

}  // namespace
}  // namespace symm::collectives

int main(int argc, char** argv) {
    using namespace symm::collectives;
    std::vector<Protocol> scenes{
        scene("equal/2x1", {2, 3, {}, {}}),
        scene("equal/2x2", {2, 3, {.threads = 2}, {}}),
        scene("equal/2x1x2", {2, 3, {.blocks = 2}, {}}),
        scene("equal/3x1", {3, 3, {}, {}}),
        scene("counts/2x1", {2, 3, {}, mixed}),
        scene("counts/2x2", {2, 3, {.threads = 2}, mixed}),
        // It is the turn of the last packet's slot, which the other thread reads.
        scene("counts/2x2/turn", {2, 3, {.threads = 2}, all, false, 2}),
        // Here by a rank that sends nothing itself.
        scene("counts/2x2/turn/one_way", {2, 3, {.threads = 2}, upwards, false, 2}),
        scene("counts/2x1/one_way", {2, 4, {}, one_way}),
        scene("counts/2x1/wrap", {2, 4, {}, mixed, false, 0xfffffffd}),
        scene("counts/2x1/clear", {2, 8, {}, last_are_full, false, 0, true}),
        scene("counts/3x1", {3, 3, {}, mixed}),
        scene("equal/2x1/overlap", {.ranks = 2, .calls = 3, .overlap = true}),
        scene("equal/3x1/overlap", {.ranks = 3, .calls = 2, .overlap = true}),
        scene("counts/2x1/overlap", {.ranks = 2, .calls = 3, .counts = mixed, .overlap = true}),
        scene("equal/2x1x2/overlap",
              {.ranks = 2, .calls = 2, .shape = {.blocks = 2}, .overlap = true}),
        scene("equal/2x1x3/idle",
              {.ranks = 2, .calls = 2, .shape = {.blocks = 3}, .overlap = true}),
        scene("windows/2x1", {2, 3, {}, {}, true}),
        scene("windows/2x2", {2, 3, {.threads = 2}, mixed, true}),
        scene("windows/2x1x2", {2, 2, {.blocks = 2}, mixed, true}),
        scene("windows/3x1", {3, 2, {}, mixed, true}),
        scene("windows/3x2", {3, 1, {.threads = 2}, mixed, true}),
        scene("windows/3x1/free",
              {.ranks = 3, .calls = 2, .counts = mixed, .windows = true, .paced = false}),
        scene("windows/3x1/none", {3, 1, {}, none, true}),
        {"all_to_all/part/9GB", place_far_part, false},
        scene("counts/2x1/huge", {2, 2, {}, huge}),
        scene("equal/5x1", {5, 2, {}, {}}),
        scene("counts/5x1", {5, 3, {}, mixed}),
        scene("windows/5x1", {5, 2, {}, mixed, true}),
    };
    add_type<std::uint8_t>(scenes, "bytes", uneven);
    add_type<std::uint32_t>(scenes, "words", mixed);
    add_rule<std::uint16_t>(scenes);
    add_rule<std::uint64_t>(scenes);
    return symm::explore::explore_main(argc, argv, scenes);
}
