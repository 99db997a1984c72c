#include "common/emu/configuration.hpp"

#include <string_view>

#include "common/sys/environment.hpp"
#include "common/sys/number.hpp"

namespace symm::emu {
namespace {

// The parts of a list: "a,b" and "a," have two, "" none.
std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (bool more = !text.empty(); more;) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        more = end != std::string_view::npos;
        text.remove_prefix(more ? end + 1 : text.size());
    }
    return parts;
}

// Reads the lost kinds of access from `words`, as in `loads+copies`. False for an unknown word.
bool set_what_is_lost(LossyPair& pair, std::string_view words) {
    pair.loads = pair.stores = pair.copies = false;
    for (const std::string_view word : split(words, '+')) {
        bool* const kind = word == "loads"    ? &pair.loads
                           : word == "stores" ? &pair.stores
                           : word == "copies" ? &pair.copies
                                              : nullptr;
        if (kind == nullptr) {
            return false;
        }
        *kind = true;
    }
    return !words.empty();
}

std::vector<LossyPair> lossy_pairs(int devices) {
    constexpr env::Name<env::Text> kVariable = "SYMM_EMU_LOSSY";
    const std::string text = env::text(kVariable);
    std::vector<LossyPair> pairs;
    for (const std::string_view item : split(text, ',')) {
        const auto parts = split(item, ':');
        const auto device = [&](std::size_t i) {
            return i < parts.size() ? number_in(parts[i], 0, devices - 1).value_or(-1) : -1;
        };
        LossyPair pair{device(0), device(1)};
        if (pair.from < 0 || pair.owner < 0 || pair.from == pair.owner || parts.size() > 3 ||
            (parts.size() == 3 && !set_what_is_lost(pair, parts[2]))) {
            env::refuse(*kVariable, text);
        }
        pairs.push_back(pair);
    }
    return pairs;
}

CUresult result_named(std::string_view name) {
    static constexpr std::pair<std::string_view, CUresult> kResults[] = {
#define SYMM_RESULT(code) {#code, code},
#include "common/driver/results.inc"
#undef SYMM_RESULT
    };
    for (const auto& [known, result] : kResults) {
        if (known == name) {
            return result;
        }
    }
    return CUDA_SUCCESS;  // not the name of a failure
}

std::vector<PlannedFailure> planned_failures() {
    constexpr env::Name<env::Text> kVariable = "SYMM_EMU_FAIL";
    const std::string text = env::text(kVariable);
    std::vector<PlannedFailure> failures;
    for (const std::string_view item : split(text, ',')) {
        const auto parts = split(item, ':');
        const auto call =
            parts.size() == 3 ? number_in(parts[1], 1L, 1'000'000'000L) : std::nullopt;
        const bool is_killed = call && parts[2] == "SIGKILL";
        if (!call || index_of_function(parts[0]) == kDriverFunctions.size() ||
            (!is_killed && result_named(parts[2]) == CUDA_SUCCESS)) {
            env::refuse(*kVariable, text);
        }
        const auto result = is_killed ? kKilled : std::optional(result_named(parts[2]));
        failures.push_back({index_of_function(parts[0]), *call, result});
    }
    return failures;
}

}  // namespace

Configuration read_configuration() {
    Configuration configuration;
    configuration.devices = static_cast<int>(env::number("SYMM_EMU_DEVICES"));
    configuration.memory = env::bytes("SYMM_EMU_MEMORY");
    configuration.multiprocessors = static_cast<int>(env::number("SYMM_EMU_SMS"));
    configuration.peer_access = env::number("SYMM_EMU_P2P") != 0;
    configuration.peer_atomics = env::number("SYMM_EMU_P2P") == 1;
    configuration.fabric = env::number("SYMM_EMU_FABRIC") == 1;
    configuration.multicast = env::number("SYMM_EMU_MULTICAST") == 1;
    configuration.torn_packs = env::number("SYMM_EMU_TORN_PACKS") == 1;
    configuration.lossy = lossy_pairs(configuration.devices);
    configuration.failures = planned_failures();
    return configuration;
}

}  // namespace symm::emu
