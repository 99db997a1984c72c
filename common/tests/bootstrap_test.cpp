// The calls of the bootstrap, among ranks that are threads.

#include "common/bootstrap/socket_bootstrap.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "common/tests/meet.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Bootstrap, GathersEveryRanksBytes) {
    for (const int size : {1, 2, 3, 8}) {
        const auto errors = meet(size, [&](Bootstrap& bootstrap) {
            for (int call = 0; call < 20; ++call) {
                // In most calls each rank has a different length; 0 and kMaxContribution occur.
                const auto length = [&](int rank) {
                    return call == 7 ? kMaxContribution
                                     : static_cast<std::size_t>(rank * call * 37);
                };
                const auto all = bootstrap.allgather_bytes(
                    "bytes", unique_bytes(bootstrap.rank(), call, length(bootstrap.rank())),
                    patient());
                ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
                for (int rank = 0; rank < size; ++rank) {
                    ASSERT_EQ(all[static_cast<std::size_t>(rank)],
                              unique_bytes(rank, call, length(rank)));
                }
            }
        });
        EXPECT_THAT(errors, Each(IsEmpty()));
    }
}

TEST(Bootstrap, BarrierLetsNoRankPassBeforeAllHaveArrived) {
    constexpr int kSize = 4;
    constexpr int kRounds = 50;
    std::atomic<int> arrived = 0;
    const auto errors = meet(kSize, [&](Bootstrap& bootstrap) {
        for (int round = 1; round <= kRounds; ++round) {
            ++arrived;
            bootstrap.barrier("round", patient());
            EXPECT_GE(arrived.load(), round * kSize);
        }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Bootstrap, DescriptorsReachEveryRankAndNoneStaysOpen) {
    const int before = open_descriptors();
    const auto errors = meet(3, [](Bootstrap& bootstrap) {
        // Rank r passes r files.
        std::vector<UniqueFd> mine;
        for (int i = 0; i < bootstrap.rank(); ++i) {
            mine.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
            const int content = bootstrap.rank() * 100 + i;
            ASSERT_EQ(::pwrite(mine.back().get(), &content, sizeof(content), 0), 4);
        }
        const auto all = bootstrap.exchange("files", mine, patient());
        ASSERT_EQ(all.size(), 3u);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            ASSERT_EQ(all[rank].size(), rank);
            for (std::size_t i = 0; i < rank; ++i) {
                int content = 0;
                ASSERT_EQ(::pread(all[rank][i].get(), &content, sizeof(content), 0), 4);
                EXPECT_EQ(content, static_cast<int>(rank * 100 + i));
            }
        }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Bootstrap, TheMostDescriptorsOfOneCallTravelAndOneMoreIsRefused) {
    const int before = open_descriptors();
    const auto errors = meet(2, [](Bootstrap& bootstrap) {
        std::vector<UniqueFd> mine;
        for (std::size_t i = 0; i < kMaxDescriptors; ++i) {
            mine.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
        }
        const auto all = bootstrap.exchange("files", mine, patient());
        EXPECT_EQ(all.at(1 - static_cast<std::size_t>(bootstrap.rank())).size(), kMaxDescriptors);
        if (bootstrap.rank() == 1) {
            mine.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
        }
        bootstrap.exchange("too many files", mine, patient());
    });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1"), HasSubstr("65 descriptors"))));
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Bootstrap, TooManyBytesFailOnEveryRank) {
    const auto errors = meet(3, [](Bootstrap& bootstrap) {
        const std::size_t bytes = bootstrap.rank() == 2 ? kMaxContribution + 1 : 1;
        bootstrap.allgather_bytes("large", unique_bytes(0, 0, bytes), patient());
    });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 2"), HasSubstr("32769 bytes"))));
}

TEST(Bootstrap, DifferentCallsAreAnErrorOnEveryRank) {
    auto errors = meet(3, [](Bootstrap& bootstrap) {
        if (bootstrap.rank() == 1) {
            bootstrap.allgather("sizes", 1, patient());
        } else {
            bootstrap.barrier("mapped", patient());
        }
    });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1"), HasSubstr("allgather 'sizes'"),
                                   HasSubstr("barrier 'mapped'"))));
    errors = meet(2, [](Bootstrap& bootstrap) {  // the same calls in another order
        bootstrap.barrier(bootstrap.rank() == 0 ? "first" : "second", patient());
        bootstrap.barrier(bootstrap.rank() == 0 ? "second" : "first", patient());
    });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("'first'"), HasSubstr("'second'"))));
}

TEST(Bootstrap, ValuesOfAnotherSizeAreAnErrorThatNamesTheRank) {
    const auto errors = meet(2, [](Bootstrap& bootstrap) {
        if (bootstrap.rank() == 1) {
            bootstrap.allgather("value", std::int64_t{1}, patient());
        } else {
            bootstrap.allgather("value", 1, patient());
        }
    });
    EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 1"), HasSubstr("8 bytes")));
    EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 0"), HasSubstr("4 bytes")));
}

// A rank that leaves before a call: rank 0 (the root), rank 1 and the last.
TEST(Bootstrap, ALostRankIsNamedInEveryKindOfCall) {
    for (const int lost : {0, 1, 3}) {
        for (const int kind : {0, 1, 2}) {
            const auto errors = meet(4, [&](Bootstrap& bootstrap) {
                bootstrap.barrier("start", patient());
                if (bootstrap.rank() == lost) {
                    return;
                }
                if (kind == 0) {
                    bootstrap.barrier("call", patient());
                } else if (kind == 1) {
                    bootstrap.allgather("call", 1, patient());
                } else {
                    bootstrap.exchange("call", {}, patient());
                }
            });
            for (std::size_t rank = 0; rank < 4; ++rank) {
                if (static_cast<int>(rank) != lost) {
                    EXPECT_THAT(
                        errors[rank],
                        AllOf(HasSubstr(fmt::format("rank {} (pid {}) closed", lost, ::getpid())),
                              HasSubstr("'call'")));
                }
            }
        }
    }
}

TEST(Bootstrap, AMissingRankIsNamedToAllThatWait) {
    std::atomic<int> gave_up = 0;
    const auto start = std::chrono::steady_clock::now();
    const auto errors = meet(4, [&](Bootstrap& bootstrap) {
        if (bootstrap.rank() == 2) {
            for (int seen = 0; seen < 3; seen = gave_up.load()) {
                gave_up.wait(seen);
            }
            return;
        }
        try {
            // Only rank 3 has a short deadline: the root gives up at the earliest of all.
            bootstrap.barrier("mapped", bootstrap.rank() == 3 ? soon() : patient());
        } catch (const BootstrapError& error) {
            EXPECT_EQ(error.rank(), 2);
            ++gave_up;
            gave_up.notify_all();
            throw;
        }
    });
    for (const std::size_t rank : {0u, 1u, 3u}) {
        EXPECT_THAT(errors[rank],
                    AllOf(HasSubstr("no word from rank 2 (pid"), HasSubstr("barrier 'mapped'")));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

TEST(Bootstrap, AFailureIsToldToAll) {
    for (const int failing : {0, 1, 2}) {
        const auto errors = meet(3, [&](Bootstrap& bootstrap) {
            bootstrap.barrier("start", patient());
            if (bootstrap.rank() == failing) {
                bootstrap.fail("the cat sat on the keyboard");
                bootstrap.fail("said once only");
            }
            try {
                bootstrap.barrier("next", patient());
            } catch (const BootstrapError& error) {
                EXPECT_EQ(error.remote(), bootstrap.rank() != failing);
                EXPECT_EQ(error.rank(), failing);
                // Every later call throws, without waiting.
                EXPECT_THROW(bootstrap.allgather("after", 1, patient()), BootstrapError);
                throw;
            }
        });
        EXPECT_THAT(errors,
                    Each(fmt::format("rank {} failed: the cat sat on the keyboard", failing)));
    }
}

// From another thread, before a call or in one that waits for rank 2.
TEST(Bootstrap, AbortEndsTheCallAndThoseToComeAndIsToldToAll) {
    const auto start = std::chrono::steady_clock::now();
    for (const int aborted : {0, 1}) {
        for (const int delay : {0, 0, 0, 20}) {
            const auto errors = meet(3, [&](Bootstrap& bootstrap) {
                bootstrap.barrier("start", patient());
                if (bootstrap.rank() == 2) {
                    for (const Deadline end = patient(); !end.passed();) {
                        bootstrap.throw_async_error("a kernel");
                        std::this_thread::sleep_for(std::chrono::milliseconds(5));
                    }
                }
                std::jthread other;
                if (bootstrap.rank() == aborted) {
                    other = std::jthread([&] {
                        std::this_thread::sleep_for(std::chrono::milliseconds(delay));
                        bootstrap.abort();
                    });
                }
                try {
                    bootstrap.barrier("next", patient());
                } catch (const BootstrapError&) {
                    EXPECT_THROW(bootstrap.allgather("after", 1, patient()), BootstrapError);
                    throw;
                }
            });
            EXPECT_THAT(errors, Each(fmt::format("rank {} failed: it was aborted", aborted)));
        }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, patient().limit());
}

TEST(Bootstrap, LookingSeesAFailureAndALostRank) {
    for (const int failing : {0, 1}) {
        for (const bool says_so : {true, false}) {
            const auto errors = meet(3, [&](Bootstrap& bootstrap) {
                bootstrap.barrier("start", patient());
                if (bootstrap.rank() == failing) {
                    if (says_so) {
                        bootstrap.fail("the cat sat on the keyboard");
                    }
                    return;
                }
                for (const Deadline end = patient(); !end.passed();) {
                    bootstrap.throw_async_error("a kernel");
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                }
            });
            const std::string expected =
                says_so ? fmt::format("rank {} failed: the cat sat on the keyboard", failing)
                        : fmt::format("rank {} (pid {}) closed its connection while rank", failing,
                                      ::getpid());
            for (std::size_t rank = 0; rank < 3; ++rank) {
                EXPECT_THAT(errors[rank],
                            HasSubstr(static_cast<int>(rank) == failing ? "" : expected));
            }
        }
    }
}

TEST(Bootstrap, LookingTakesNothingFromTheNextCall) {
    const auto errors = meet(3, [](Bootstrap& bootstrap) {
        bootstrap.barrier("start", patient());
        for (int i = 0; bootstrap.rank() == 0 && i < 20; ++i) {  // the others have called already
            bootstrap.throw_async_error("a kernel");
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        const auto all = bootstrap.allgather("next", bootstrap.rank(), patient());
        EXPECT_EQ(all, (std::vector{0, 1, 2}));
        bootstrap.throw_async_error(
            "a kernel");  // a rank may have left already, at its end: that is no error
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Bootstrap, AFailedStepIsKnownToAllAndTheNextCallWorks) {
    const auto errors = meet(4, [](Bootstrap& bootstrap) {
        for (int round = 0; round < 5; ++round) {
            const int failing = round % 5;  // in the last round no rank fails
            try {
                bootstrap.together("step", [&] {
                    if (bootstrap.rank() == failing) {
                        throw std::out_of_range(fmt::format("no chair in round {}", round));
                    }
                });
                EXPECT_EQ(failing, 4);
            } catch (const std::out_of_range&) {
                EXPECT_EQ(bootstrap.rank(), failing);
            } catch (const BootstrapError& error) {
                EXPECT_EQ(std::string(error.what()),
                          fmt::format("rank {} failed: no chair in round {}", failing, round));
                EXPECT_TRUE(error.remote());
            }
            EXPECT_EQ(bootstrap.allgather("round", round, patient()), std::vector<int>(4, round));
        }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace symm
