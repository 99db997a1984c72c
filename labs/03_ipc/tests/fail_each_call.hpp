#pragma once
/// \file
/// Makes each driver call of a collective path fail: all ranks have to learn of it, and nothing may
/// be left behind. Emulated driver only.

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>

#include "common/tests/meet.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm::testing {

inline void expect_nothing_left(Rank& rank, const emu::Inventory& before,
                                const std::string& after_what) {
    rank.bootstrap().barrier("let go");  // threads share one driver: all have released theirs
    EXPECT_EQ(emu::inventory(), before) << "on rank " << rank.rank() << " after " << after_what;
    rank.bootstrap().barrier("looked");
}

/// A path by which ranks share memory. Collective: if one rank throws, all throw. It returns the
/// owner of what it made, so that the calls that destroy it are not counted.
struct Path {
    const char* name;
    std::function<std::shared_ptr<void>(Rank&)> make;
};

/// Makes every driver call that a rank makes on the path fail, one after the other. Each time all
/// ranks throw an error that names the call, and nothing is left. Among threads, which share one
/// driver, the call may be another rank's. Of the calls, only each `every`-th fails, and none that
/// gives something back.
inline void fail_each_call(Rank& rank, int failing, const Path& path, std::size_t every = 1) {
    path.make(rank);  // makes the queries that are made only once
    rank.bootstrap().barrier("start");
    const emu::Inventory before = emu::inventory();
    const int descriptors = open_descriptors();
    rank.bootstrap().barrier("counted");
    std::shared_ptr<void> kept;
    const auto calls = calls_of([&] {
        kept = path.make(rank);
        rank.bootstrap().barrier("all calls made");
    });
    rank.bootstrap().barrier("all have counted");
    kept.reset();
    // All ranks use the failing rank's list.
    const auto place = static_cast<std::size_t>(failing);
    const std::size_t count = rank.bootstrap().allgather("calls", calls.size())[place];
    EXPECT_GT(count, 0u);
    for (std::size_t i = 0; i < count; i += every) {
        const std::string function = rank.bootstrap().allgather_text(
            "function", i < calls.size() ? calls[i].function : "")[place];
        if (gives_back(function)) {
            continue;
        }
        if (rank.rank() == failing) {
            emu::fail_call(function, calls[i].number, kInjected);
        }
        rank.bootstrap().barrier("armed");
        const std::string error = text_thrown_by([&] { path.make(rank); });
        rank.bootstrap().barrier("tried");
        emu::clear_failures();
        const std::string what =
            fmt::format("{}: call {} of {}, failing on rank {}", path.name,
                        i < calls.size() ? calls[i].number : 0, function, failing);
        EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr(function),
                                            ::testing::HasSubstr(name_of(kInjected))))
            << what;
        expect_nothing_left(rank, before, what);
        if (!rank.is_thread()) {
            EXPECT_EQ(open_descriptors(), descriptors) << what;
        }
    }
}

}  // namespace symm::testing
