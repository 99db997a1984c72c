// AllReduce, residual and RMSNorm in every execution: through the mailbox, and in windows.

#include "../long_rows_kernel.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "row_scenes.hpp"
#include "scenes.hpp"

namespace symm::collectives {
namespace {

enum class Way { kPacks, kParts, kOneShot, kTwoShots };

struct Calls {
    int ranks;
    std::vector<unsigned> rows;  ///< Of each call.
    unsigned hidden;             ///< A multiple of four.
    symm::explore::Shape shape;
    Way way;
    std::uint32_t last = 0;  ///< The number of the call before the first.
    symm::Packet old{};      ///< What packets 2 and 3 of `squares` hold then.
    bool overlap = false;    ///< Each call is a dependent launch, with its own buffers.
    bool ones = false;    ///< In call 1, all bits of rank 1's first element are set: a sentinel's.
    bool rounds = false;  ///< Halves that are others if the ranks' sum is rounded by itself.
    bool halves = false;  ///< Elements, but float weights, an offset of these, and a bias.
    bool order = false;   ///< Floats of three ranks whose sum is another one in another order.
    bool bare = false;    ///< No residual.
    std::vector<Way> ways = {};  ///< Of the calls in turn, if not all go one way.

    bool through_mailbox() const {
        return way <= Way::kParts &&
               std::ranges::all_of(ways, [](Way one) { return one <= Way::kParts; });
    }
    Way way_of(unsigned call) const { return ways.empty() ? way : ways[call % ways.size()]; }
    unsigned most_rows() const { return *std::ranges::max_element(rows); }
    unsigned slots() const {  ///< Of a mailbox, for each sender: a power of two.
        return std::bit_ceil(most_rows() * hidden / 4);
    }
};

template <class T>
struct Buffers {
    T *x, *residual, *out;
};

constexpr unsigned kMostParts = 16;  ///< Of all rows of a call.
constexpr float kOffset = 2;         ///< Of halves' weights.
/// So many elements differ, if they are halves: the sum of three ranks has at most 11 bits.
constexpr std::size_t kOfHalves = 37;

float x(const Calls& calls, int rank, unsigned call, std::size_t i) {
    if (calls.ones && call == 1 && rank == 1 && i == 0) {
        return std::bit_cast<float>(~std::uint32_t{0});
    }
    if (calls.order) {
        constexpr float kLarge = 1 << 24;
        return rank == 0 ? static_cast<float>(3 + 4 * call + 2 * i) : rank == 1 ? kLarge : -kLarge;
    }
    if (calls.rounds) {  // the step between halves is two
        return rank == 0 ? 2048 + static_cast<float>(16 * call + 4 * i) : 1;
    }
    const std::size_t of_element = calls.halves ? 10 * (i % kOfHalves) : 100 * i;
    return static_cast<float>(1 + static_cast<unsigned>(rank) + 10 * call + of_element);
}
float before(const Calls& calls, unsigned call, std::size_t i) {
    const std::size_t of_element = 7 * (calls.halves ? i % kOfHalves : i);
    return calls.bare ? 0 : calls.rounds ? 1 : static_cast<float>(5 + call + of_element);
}
float weight(std::size_t i) {
    return static_cast<float>(1 + i % 3);
}
float bias(std::size_t i) {
    return static_cast<float>(i);
}

float sum(const Calls& calls, unsigned call, std::size_t i) {
    float sum = 0;
    for (int p = 0; p < calls.ranks; ++p) {
        sum += x(calls, p, call, i);
    }
    return sum + before(calls, call, i);
}

bool same(float a, float b, float most) {
    return std::abs(a - b) <= most || (std::isnan(a) && std::isnan(b));
}

// A rank that gave up has stored right residuals and outputs, or none.
template <class T>
void check(const Calls& calls, unsigned call, const T* residual, const T* out, bool gave_up) {
    for (std::size_t row = 0; row < calls.rows[call]; ++row) {
        float squares = 0;
        for (std::size_t i = row * calls.hidden; i < (row + 1) * calls.hidden; ++i) {
            const auto seen = static_cast<float>(calls.bare ? T{} : residual[i]);
            if (!calls.bare && !same(seen, sum(calls, call, i), 0) &&
                !(gave_up && seen == before(calls, call, i))) {
                symm::explore::fail(gave_up ? "a rank that gave up has stored a wrong residual"
                                            : "a residual is wrong");
            }
            squares += sum(calls, call, i) * sum(calls, call, i);
        }
        const float rms = std::sqrt(squares / static_cast<float>(calls.hidden) + kEpsilon);
        for (std::size_t i = 0; i < calls.hidden; ++i) {
            const std::size_t at = row * calls.hidden + i;
            const float plain = sum(calls, call, at) / rms;
            const float expected =
                calls.halves ? plain * (weight(i) + kOffset) + bias(i) : plain * weight(i);
            const auto seen = static_cast<float>(out[at]);
            const float most = calls.halves ? expected / 1024 : 1e-4F;
            if (!same(seen, expected, most) && !(gave_up && seen == 0)) {
                symm::explore::fail(gave_up ? "a rank that gave up has stored a wrong output"
                                            : "an output is wrong");
            }
        }
    }
}

template <class T>
void fill_scene(Scene& scene, const Calls& calls) {
    constexpr bool kPlain = std::is_same_v<T, float>;
    const Memory memory(scene, calls.ranks, std::max(calls.slots(), 4U));
    for (int rank = 0; rank < calls.ranks; ++rank) {
        std::fill_n(memory.slots.of(rank), memory.slots_of_rank(),
                    symm::simt::Pack16{{symm::kSentinel, symm::kSentinel}});
        std::vector<Buffers<T>> buffers;
        for (std::size_t i = 0; i < (calls.overlap ? calls.rows.size() : 1); ++i) {
            const std::size_t elements = std::size_t{calls.most_rows()} * calls.hidden;
            buffers.push_back({scene.allocate<T>(elements, "x", rank),
                               scene.allocate<T>(elements, "residual", rank),
                               scene.allocate<T>(elements, "out", rank)});
        }
        const auto of_call = [=](unsigned c) { return buffers[c % buffers.size()]; };
        const auto [in, residual, out] = buffers.front();
        auto* const weights = scene.allocate<float>(calls.hidden, "weight", rank);
        auto* const biases = kPlain ? nullptr : scene.allocate<float>(calls.hidden, "bias", rank);
        auto* const squares = scene.zeroed<symm::Packet>(kMostParts, "squares", rank);
        squares[2] = squares[3] = calls.old;
        const RmsNormWindowsParams call{
            {memory.call(scene, rank, in, out, 0, calls.last), 0,
             reinterpret_cast<CUdeviceptr>(weights), 0, calls.hidden, kEpsilon,
             kPlain ? 0 : kOffset, reinterpret_cast<CUdeviceptr>(biases), 0, !kPlain},
            false,
            memory.meeting(rank, in, residual),
            memory.barrier(rank)};
        const auto fill = [=](unsigned c) {
            const auto [in, residual, out] = of_call(c);
            for (std::size_t i = 0; i < calls.rows[c] * calls.hidden; ++i) {
                in[i] = static_cast<T>(x(calls, rank, c, i));
                residual[i] = static_cast<T>(before(calls, c, i));
                out[i] = T{};
            }
            for (std::size_t i = 0; c == 0 && i < calls.hidden; ++i) {  // not to be read earlier
                weights[i] = weight(i);
                if (!kPlain) {
                    biases[i] = bias(i);
                }
            }
        };
        const auto kernel = [=](unsigned c, const ThreadBlock& block) {
            const auto [in, residual, out] = of_call(c);
            RmsNormWindowsParams mine = call;
            mine.in = reinterpret_cast<CUdeviceptr>(in);
            mine.out = reinterpret_cast<CUdeviceptr>(out);
            mine.residual = calls.bare ? 0 : reinterpret_cast<CUdeviceptr>(residual);
            mine.rows = calls.rows[c];
            mine.count = calls.rows[c] * calls.hidden;
            mine.two_shots = calls.way_of(c) == Way::kTwoShots;
            const unsigned lanes = symm::simt::Warp(block).size();
            const unsigned packs = calls.hidden * sizeof(T) / sizeof(Pack);
            switch (calls.way_of(c)) {
                case Way::kPacks:
                    return RmsNormPacks<T, kMost, kPlain>{{mine}}(block);
                case Way::kParts:
                    return RmsNormParts<T, kMost, kPlain>{
                        {{mine}}, squares, kMostParts, (packs + lanes - 1) / lanes}(block);
                default:
                    return RmsNormWindows<T, kMost, kPlain>{mine}(block);
            }
        };
        const auto check_call = [=](unsigned c, bool gave_up) {
            if (!gave_up || calls.way_of(c) <= Way::kParts) {
                const auto [in, residual, out] = of_call(c);
                check<T>(calls, c, residual, out, gave_up);
            }
        };
        (calls.overlap ? launch_overlapping : launch_calls)(
            scene, rank, calls.shape, call.timeout, static_cast<unsigned>(calls.rows.size()),
            {fill, kernel, check_call, calls.through_mailbox()});
    }
}

Protocol scene(const std::string& name, Calls calls, bool may_give_up = true) {
    calls.shape.shared_bytes = RmsNormWindows<float, kMost>::shared_bytes(calls.hidden);
    const auto fill = [=](Scene& scene) {
        calls.halves ? fill_scene<__half>(scene, calls) : fill_scene<float>(scene, calls);
    };
    return {"rms_norm/" + name, fill, may_give_up};
}

/// Random executions: there are too many.
Protocol sampled(Protocol one) {
    one.sample = 500;
    return one;
}

Protocol ordered(const std::string& name, Calls calls) {
    calls.order = true;
    return scene(name + "/order", calls, false);
}

Protocol overlapping(const std::string& name, Calls calls) {
    calls.overlap = true;
    return scene(name + "/overlap", calls);
}

/// The same calls for each way, kind of call and shape: rows of whole rounds of a block and a part
/// of one, fewer and more rows than blocks, and at last the first call's again.
void add_by_rule(std::vector<Protocol>& scenes) {
    struct Kind {
        const char* name;
        Calls calls;
    };
    const Kind kinds[] = {{"float", {}},
                          {"order", {.order = true}},
                          {"halves", {.halves = true}},
                          {"bare", {.halves = true, .bare = true}}};
    const std::pair<const char*, Way> ways[] = {{"packs", Way::kPacks},
                                                {"parts", Way::kParts},
                                                {"one_shot", Way::kOneShot},
                                                {"two_shots", Way::kTwoShots}};
    const symm::explore::Shape shapes[] = {
        {}, {.threads = 2}, {.blocks = 2}, {.blocks = 2, .threads = 2}};
    for (const auto& [way_name, way] : ways) {
        for (const auto& [kind, of_kind] : kinds) {
            for (const int ranks : {2, 3}) {
                for (const auto& shape : shapes) {
                    // Two shots, and parts of long rows, keep sums in the residual. Two ranks add
                    // up the same in either order.
                    const bool keeps_sums = way == Way::kTwoShots || way == Way::kParts;
                    if ((keeps_sums && of_kind.bare) || (of_kind.order && ranks == 2)) {
                        continue;
                    }
                    Calls calls = of_kind;
                    calls.ranks = ranks;
                    calls.way = way;
                    calls.shape = shape;
                    const unsigned packs = 2 * shape.threads.x + 1;
                    calls.hidden = packs * (calls.halves ? 8 : 4);
                    calls.rows = {1, 3, 1};
                    std::string name = std::string(way_name) + "/" + std::to_string(ranks) + "x" +
                                       std::to_string(shape.threads.x);
                    name += shape.blocks.x > 1 ? "x2" : "";
                    Protocol one = scene(name + "/rule/" + kind, calls, false);
                    one.sample = 50;
                    scenes.push_back(std::move(one));
                }
            }
        }
    }
}

/// Calls that go other ways than those before and after them, through the same memory.
void add_mixed(std::vector<Protocol>& scenes) {
    const std::pair<const char*, std::vector<Way>> mixed[] = {
        {"packs+parts", {Way::kPacks, Way::kParts}},
        {"parts+two_shots", {Way::kParts, Way::kTwoShots}},
        {"packs+one_shot", {Way::kPacks, Way::kOneShot}},
        {"all", {Way::kTwoShots, Way::kPacks, Way::kOneShot, Way::kParts}}};
    const std::pair<const char*, symm::explore::Shape> shapes[] = {
        {"2x1", {}}, {"2x2", {.threads = 2}}, {"2x1x2", {.blocks = 2}}};
    for (const auto& [name, ways] : mixed) {
        for (const auto& [of_two, shape] : shapes) {
            Calls calls{2, {2, 1, 2, 3, 2}, 20, shape, Way::kPacks};
            calls.ways = ways;
            Protocol one =
                scene(std::string("mixed/") + name + '/' + of_two, calls, calls.through_mailbox());
            one.sample = 50;
            scenes.push_back(std::move(one));
        }
    }
}

}  // namespace
}  // namespace symm::collectives

int main(int argc, char** argv) {
    using namespace symm::collectives;
    std::vector<symm::explore::Protocol> scenes = {
        // Two warps. Where waits may give up, that takes hours.
        scene("packs/2x33/3rows", {2, {3}, 8, {.threads = 33}, Way::kPacks}, false),
        // The second warp has a pack; the first one has another in a second round.
        scene("packs/2x33/33p", {2, {1, 1}, 132, {.threads = 33}, Way::kPacks}, false),
        scene("packs/2x1/17p", {2, {2}, 68, {}, Way::kPacks}, false),
        scene("packs/2x64/65p", {2, {1}, 260, {.threads = 64}, Way::kPacks}, false),
        scene("packs/2x33x2", {2, {5}, 8, {.blocks = 2, .threads = 33}, Way::kPacks}, false),
        scene("two_shots/2x33", {2, {3}, 132, {.threads = 33}, Way::kTwoShots}, false),
        scene("packs/2x1", {2, {1, 1, 1}, 4, {}, Way::kPacks}),
        scene("packs/2x1/2rounds", {2, {1, 1}, 8, {}, Way::kPacks}),
        scene("packs/2x2", {2, {2, 2, 2}, 8, {.threads = 2}, Way::kPacks}),
        scene("packs/2x2/3rows", {2, {3, 1}, 4, {.threads = 2}, Way::kPacks}),
        scene("packs/2x1x2", {2, {2, 1, 2}, 4, {.blocks = 2}, Way::kPacks}),
        scene("packs/2x1/wrap", {2, {1, 1, 1, 1}, 4, {}, Way::kPacks, 0xfffffffd}),
        scene("packs/2x1/ones",
              {.ranks = 2, .rows = {2, 2, 2}, .hidden = 4, .way = Way::kPacks, .ones = true}),
        scene("packs/2x1/halves/bare", {.ranks = 2,
                                        .rows = {1, 1, 1},
                                        .hidden = 16,
                                        .way = Way::kPacks,
                                        .halves = true,
                                        .bare = true}),
        scene("one_shot/2x1/halves/bare", {.ranks = 2,
                                           .rows = {1, 1},
                                           .hidden = 16,
                                           .way = Way::kOneShot,
                                           .halves = true,
                                           .bare = true}),
        scene("parts/2x1/halves/bare", {.ranks = 2,
                                        .rows = {1, 1, 1},
                                        .hidden = 8,
                                        .way = Way::kParts,
                                        .halves = true,
                                        .bare = true}),
        ordered("packs/3x1", {3, {1}, 4, {}, Way::kPacks}),
        ordered("parts/3x1", {3, {1}, 4, {}, Way::kParts}),
        ordered("one_shot/3x1", {3, {1}, 4, {}, Way::kOneShot}),
        ordered("two_shots/3x1", {3, {3}, 4, {}, Way::kTwoShots}),
        // 16 parts, 32, 33, more than 64, and three for each lane.
        {"rms_norm/rows/float8", fill_float8, false},
        rows("16", 2048, 1),
        rows("32", 4092, 2),
        rows("33", 4100, 1),
        rows("65", 8196, 2),
        rows("96", 12284, 1),
        scene("packs/2x2/5p", {2, {1, 2, 1}, 20, {.threads = 2}, Way::kPacks}, false),
        scene("packs/3x1", {3, {1, 2, 1}, 4, {}, Way::kPacks}),
        scene("packs/2x1/halves",
              {.ranks = 2, .rows = {2, 1}, .hidden = 16, .way = Way::kPacks, .halves = true}),
        scene("packs/2x1/halves/order", {.ranks = 2,
                                         .rows = {2, 1},
                                         .hidden = 16,
                                         .way = Way::kPacks,
                                         .rounds = true,
                                         .halves = true}),
        scene("parts/2x1/halves",
              {.ranks = 2, .rows = {2, 1}, .hidden = 16, .way = Way::kParts, .halves = true}),
        scene("two_shots/2x1/halves",
              {.ranks = 2, .rows = {2, 2}, .hidden = 16, .way = Way::kTwoShots, .halves = true}),
        scene("two_shots/2x1/halves/order", {.ranks = 2,
                                             .rows = {2, 2},
                                             .hidden = 16,
                                             .way = Way::kTwoShots,
                                             .rounds = true,
                                             .halves = true}),
        overlapping("packs/2x1", {2, {1, 1, 1}, 4, {}, Way::kPacks}),
        overlapping("packs/2x2", {2, {2, 2}, 8, {.threads = 2}, Way::kPacks}),
        overlapping("packs/2x1x2", {2, {2, 2}, 4, {.blocks = 2}, Way::kPacks}),
        overlapping("parts/2x1", {2, {1, 1, 1}, 4, {}, Way::kParts}),
        overlapping("parts/2x1x2/idle", {2, {2, 1}, 4, {.blocks = 2}, Way::kParts}),
        overlapping("parts/2x1/fewer", {2, {2, 1}, 4, {}, Way::kParts}),
        // Blocks of two warps, whose parts are shorter than a warp.
        scene("parts/2x64x2", {2, {4, 3}, 4, {.blocks = 2, .threads = 64}, Way::kParts}, false),
        // Two warps of two lanes share a row.
        sampled(scene("parts/2x2x2", {2, {1}, 16, {.blocks = 2, .threads = 2}, Way::kParts})),
        scene("parts/2x1", {2, {1, 1, 1}, 4, {}, Way::kParts}),
        scene("parts/2x1x2", {2, {1, 1}, 8, {.blocks = 2}, Way::kParts}),
        scene("parts/2x1x2/old", {2, {1, 1, 1, 2}, 8, {.blocks = 2}, Way::kParts, 0, {7, 4, 7, 4}},
              false),
        scene("parts/2x2/old", {2, {1, 1, 1, 2}, 16, {.threads = 2}, Way::kParts, 0, {7, 4, 7, 4}},
              false),
        scene("parts/2x1x2/again", {2, {2, 1, 2}, 8, {.blocks = 2}, Way::kParts}, false),
        scene("parts/2x2", {2, {1, 1}, 16, {.threads = 2}, Way::kParts}),
        scene("parts/2x1/ones",
              {.ranks = 2, .rows = {2, 2, 2}, .hidden = 4, .way = Way::kParts, .ones = true}),
        scene("parts/2x1/2parts", {2, {2, 1}, 8, {}, Way::kParts}),
        scene("parts/2x1/wrap", {2, {1, 1, 1, 1}, 4, {}, Way::kParts, 0xfffffffd}),
        scene("parts/3x1", {3, {1, 1}, 4, {}, Way::kParts}),
        scene("one_shot/2x1", {2, {1, 1, 1}, 4, {}, Way::kOneShot}),
        scene("one_shot/2x2", {2, {2, 2}, 8, {.threads = 2}, Way::kOneShot}),
        scene("two_shots/2x1", {2, {2, 2}, 4, {}, Way::kTwoShots}),
        scene("two_shots/2x2", {2, {3, 1}, 8, {.threads = 2}, Way::kTwoShots}),
        scene("two_shots/2x1x2", {2, {4, 3}, 4, {.blocks = 2}, Way::kTwoShots}),
        scene("two_shots/3x1", {3, {3, 2}, 4, {}, Way::kTwoShots}),
        scene("packs/5x1", {5, {1, 2, 1}, 8, {}, Way::kPacks}, false),
        scene("parts/5x1", {5, {1, 2, 1}, 8, {}, Way::kParts}, false),
        scene("two_shots/5x1", {5, {6, 2}, 4, {}, Way::kTwoShots}, false),
    };
    add_by_rule(scenes);
    add_mixed(scenes);
    return symm::explore::explore_main(argc, argv, scenes);
}
