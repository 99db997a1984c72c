#pragma once
/// \file
/// Scenes by rule where there are too many combinations of properties: faults that need two values
/// at once are common, those that need three are rare (pairwise testing).

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace symm::explore {

using Setting = std::vector<std::size_t>;  ///< The value of each property, numbered from 0.

/// Settings such that every two values of two properties meet in one of them; property p has
/// `values[p]` values. Greedy: a setting begins with two values that have not met, and takes of
/// each other property the value that meets the most new ones. Another `seed` gives others.
inline std::vector<Setting> every_pair(const std::vector<std::size_t>& values, unsigned seed) {
    constexpr std::size_t kOpen = ~std::size_t{0};
    std::mt19937 random(seed);
    std::vector<Setting> settings;
    const auto is_new = [&](std::size_t p, std::size_t v, std::size_t q, std::size_t w) {
        return std::ranges::none_of(settings,
                                    [=](const Setting& s) { return s[p] == v && s[q] == w; });
    };
    const auto complete = [&](Setting setting) {
        for (std::size_t p = 0; p < values.size(); ++p) {
            const auto gain = [&](std::size_t v) {
                std::size_t sum = 0;
                for (std::size_t q = 0; q < values.size(); ++q) {
                    sum += setting[q] != kOpen && is_new(p, v, q, setting[q]) ? 1 : 0;
                }
                return sum;
            };
            if (setting[p] == kOpen) {
                std::size_t best = random() % values[p];  // of equally good ones, any
                for (std::size_t v = 0; v < values[p]; ++v) {
                    best = gain(v) > gain(best) ? v : best;
                }
                setting[p] = best;
            }
        }
        return setting;
    };
    for (std::size_t p = 0; p < values.size(); ++p) {
        for (std::size_t q = p + 1; q < values.size(); ++q) {
            for (std::size_t v = 0; v < values[p]; ++v) {
                for (std::size_t w = 0; w < values[q]; ++w) {
                    if (is_new(p, v, q, w)) {
                        Setting setting(values.size(), kOpen);
                        setting[p] = v;
                        setting[q] = w;
                        settings.push_back(complete(setting));
                    }
                }
            }
        }
    }
    return settings;
}

}  // namespace symm::explore
