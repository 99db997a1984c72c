#include "labs/06_allreduce/tuning/tuner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"

namespace symm {
namespace {

/// A row, and why it was chosen.
struct Choice {
    const AlgorithmRow* row;
    std::string_view why;
};

constexpr std::string_view kAsked = "as requested";
constexpr std::string_view kFewBlocks = "with this few blocks, two shots are faster";
constexpr std::string_view kNoWindow =
    "a buffer is not in a window: it goes through scratch memory";
constexpr std::string_view kNoWindowNeeded =
    "a buffer is not in a window: a large call goes through peer slots";

/// Whether the ranks have what the row needs. `in_windows`: peers can reach the buffers that they
/// use.
bool is_possible(const AlgorithmRow& row, bool in_windows, const MostShapes& most) {
    return (!row.needs.windows || row.needs.or_slots || in_windows) &&
           (most.own_devices || (!row.needs.own_device && !row.cost.for_links));
}

bool has_enough_blocks(const AlgorithmRow& row, std::size_t bytes, const MostShapes& most) {
    return bytes <= row.cost.enough_for(most.of(row).blocks);
}

/// The table's choice, if the call can take it. Else, the algorithm that needs only windows; or one
/// that needs none: the one for calls of this size, or one that makes them in pieces.
Choice choose(const Call& call, bool in_windows, const Tuner& tuner) {
    const std::size_t bytes = call.all_bytes(tuner.ranks);
    const TuningRow& sizes = tuner.table.row(tuner.ranks, kind_of(call));
    const AlgorithmRow* wanted = find_row(call.collective, sizes.algorithm(bytes));
    const AlgorithmRow* in_place = nullptr;
    const AlgorithmRow* outside = nullptr;  // that the table uses, if it uses one
    const AlgorithmRow* for_large = nullptr;
    std::size_t for_large_above = 0;
    for (const AlgorithmRow& row : algorithm_rows()) {
        if (row.collective != call.collective || !row.supports(call.type, call.op)) {
            continue;
        }
        if (row.takes(tuner.ranks, bytes) && is_possible(row, in_windows, tuner.most)) {
            return {&row, row.texts.why};
        }
        const std::size_t above =
            row.cost.outside_windows_above(tuner.ranks, tuner.most.any.blocks);
        if (bytes > above && above >= for_large_above && is_possible(row, false, tuner.most) &&
            has_enough_blocks(row, bytes, tuner.most)) {
            for_large = &row;
            for_large_above = above;
        }
        if (row.stands_in == StandsIn::kInWindows) {
            in_place = &row;
        } else if (row.stands_in == StandsIn::kOutside &&
                   (outside == nullptr || sizes.limit(row.algorithm) != 0)) {
            outside = &row;
        }
    }
    if (wanted == nullptr || (wanted->needs.windows && !in_windows) ||
        !is_possible(*wanted, in_windows, tuner.most)) {
        if (in_windows) {
            return {in_place, in_place->texts.why};
        }
        return for_large != nullptr ? Choice{for_large, kNoWindowNeeded}
                                    : Choice{outside, kNoWindow};
    }
    if (in_windows && !has_enough_blocks(*wanted, bytes, tuner.most)) {
        return {in_place, kFewBlocks};
    }
    return {wanted, wanted->texts.why};
}

/// Throws if the row cannot make the call.
void require_possible(const AlgorithmRow& row, const Call& call, int ranks, bool in_windows,
                      const MostShapes& most) {
    const auto refuse = [&](std::string_view why, bool (*fit)(const AlgorithmRow&)) {
        throw std::invalid_argument(
            fmt::format("{}: use {}", why, alternatives(call.collective, fit)));
    };
    const std::string name(name_of(row.algorithm));
    if (row.needs.floating_only && !is_floating(call.type)) {
        refuse("integers have no sentinel, which " + name + " needs",
               [](const AlgorithmRow& other) { return !other.needs.floating_only; });
    }
    if (!row.supports(call.type, call.op)) {
        throw std::invalid_argument(fmt::format(
            "no switch makes {} of {} ({}): it adds up floating types and integers of 32 and 64 "
            "bits, and compares halves, bfloat16s and such integers",
            name_of(call.op), name_of(call.type), name));
    }
    if (ranks > row.needs.most_ranks) {
        refuse(fmt::format("{} takes at most {} ranks", name, row.needs.most_ranks),
               [](const AlgorithmRow& other) { return other.needs.most_ranks > kMaxRanksOnGpus; });
    }
    if (row.needs.own_device && !most.own_devices) {
        refuse(name + " needs one device per rank",
               [](const AlgorithmRow& other) { return !other.needs.own_device; });
    }
    if (row.needs.windows && !row.needs.or_slots && !in_windows) {
        const CollectiveRow& collective = row_of(call.collective);
        throw std::invalid_argument(
            fmt::format("{} needs {} (Communicator::allocate)", name,
                        collective.from != Holders::kAll ? "its output in a window"
                        : collective.to != Holders::kAll ? "its input in a window"
                                                         : "both buffers in windows"));
    }
}

std::string limit_text(std::size_t bytes) {
    return bytes == kAnySize ? "any size" : format_bytes(bytes);
}

}  // namespace

std::string describe(const CallPlan& plan, int ranks) {
    return fmt::format(fmt::runtime(plan.why), fmt::arg("up_to", limit_text(plan.up_to)),
                       fmt::arg("above", limit_text(plan.above)), fmt::arg("times", ranks / 2.0));
}

TunerOverrides TunerOverrides::from_environment() {
    return {named<Algorithm>("SYMM_ALGO", env::text("SYMM_ALGO")),
            static_cast<unsigned>(env::number("SYMM_BLOCKS")),
            static_cast<unsigned>(env::number("SYMM_THREADS"))};
}

bool Tuner::may_take(const AlgorithmRow& row, std::size_t bytes) const {
    if (overrides.algorithm == row.algorithm) {
        return true;
    }
    const auto taken = [&](CallKind kind) {
        const TuningRow& sizes = table.row(ranks, kind);
        return kind_makes(kind, row) && sizes.limit(row.algorithm) != 0 &&
               bytes > sizes.above(row.algorithm);
    };
    return is_possible(row, true, most) && has_enough_blocks(row, bytes, most) &&
           std::ranges::any_of(kCallKinds, taken);
}

CallPlan Tuner::plan(const Call& call, bool in_windows, Algorithm asked) const {
    if (asked == Algorithm::kAuto && find_row(call.collective, overrides.algorithm) != nullptr) {
        asked = overrides.algorithm;
    }
    Choice choice{find_row(call.collective, asked), kAsked};
    if (asked == Algorithm::kAuto) {
        choice = choose(call, in_windows, *this);
    } else if (choice.row == nullptr) {
        throw std::invalid_argument(fmt::format("{} does not support {}: use {}",
                                                name_of(call.collective), name_of(asked),
                                                alternatives(call.collective)));
    }
    const AlgorithmRow& row = *choice.row;
    require_possible(row, call, ranks, in_windows, most);

    const std::size_t piece = std::min(call.bytes(), row.cost.at_once(ranks));
    const std::size_t unit =
        row.cost.bytes_per_thread * static_cast<std::size_t>(row.cost.by_parts ? ranks : 1);
    const LaunchShape& limit = most.of(row);
    LaunchShape shape = row.cost.shape((piece + unit - 1) / unit, limit);
    shape.blocks = std::min(shape.blocks, row.cost.most_blocks);
    if (overrides.threads != 0) {
        shape.threads = std::clamp(overrides.threads / 32 * 32, 32U, limit.threads);
    }
    if (overrides.blocks != 0) {
        shape.blocks = std::min(overrides.blocks, limit.blocks);
    }
    const TuningRow& sizes = table.row(ranks, kind_of(call));
    return {row.algorithm,
            &row,
            shape,
            piece / size_of(call.type),
            choice.why,
            sizes.limit(row.algorithm),
            sizes.above(row.algorithm)};
}

}  // namespace symm
