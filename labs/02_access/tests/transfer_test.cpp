// Transfers at once, and the matrices made of them.

#include <gmock/gmock.h>

#include "labs/02_access/bandwidth.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"
#include "labs/02_access/transfer.hpp"

namespace symm {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = 20'004;  // no multiple of a vector

class Transfers : public AccessLabTest {
protected:
    PeerMatrix matrix_ = PeerMatrix::query();
};

TEST_F(Transfers, ArriveByEveryMethodInBothDirections) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().back();
    TransferBench bench(gpus(), matrix_, kBytes);
    for (const Method method : {Method::kLoads, Method::kStores, Method::kCopyEngine}) {
        const PeerTransfer there{pair.accessor, pair.owner, method, 0, 0, kBytes};
        const PeerTransfer back{pair.owner, pair.accessor, method, 0, 0, kBytes};
        EXPECT_EQ(bench.run(std::array{there}, 1).size(), 1u);
        EXPECT_EQ(bench.run(std::array{there, back}, 3).size(), 2u);
    }
}

TEST_F(Transfers, OfPartsArriveWhereTheyBelong) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().front();
    TransferBench bench(gpus(), matrix_, kBytes);
    // Two parts, crossed over, of different sizes; run() compares each with the source's words.
    const std::array parts{
        PeerTransfer{pair.accessor, pair.owner, Method::kStores, 16, 10'000, 1'000},
        PeerTransfer{pair.accessor, pair.owner, Method::kStores, 10'000, 16, 4},
    };
    EXPECT_EQ(bench.run(parts, 2).size(), 2u);
}

TEST_F(Transfers, ThatAreImpossibleAreRefused) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().front();
    TransferBench bench(gpus(), matrix_, kBytes);
    const PeerTransfer good{pair.accessor, pair.owner, Method::kStores, 0, 0, kBytes};
    const auto refused = [&](auto change) {
        PeerTransfer bad = good;
        change(bad);
        EXPECT_THROW(bench.run(std::array{bad}, 1), std::invalid_argument);
    };
    refused([](PeerTransfer& t) { t.bytes = 0; });
    refused([](PeerTransfer& t) { t.bytes = 6; });
    refused([](PeerTransfer& t) { t.bytes += 4; });
    refused([](PeerTransfer& t) { t.source_offset = 16; });
    refused([](PeerTransfer& t) { t.destination_offset = 4, t.bytes = 4; });
    matrix_.exclude(pair, "for this test");
    refused([](PeerTransfer&) {});
}

TEST_F(Transfers, ThatAreStaleOrMissingAreNoticed) {
    SYMM_NEED_PEERS();
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    const Pair pair = matrix_.usable_pairs().front();
    TransferBench bench(gpus(), matrix_, kBytes);
    const PeerTransfer transfer{pair.accessor, pair.owner, Method::kCopyEngine, 0, 0, kBytes};
    emu::fail_call("cuMemcpyAsync", 2, CUDA_ERROR_UNKNOWN);  // after the warm-up, behind the gate
    EXPECT_THROW(bench.run(std::array{transfer}, 2), CudaError);
    EXPECT_EQ(bench.run(std::array{transfer}, 2).size(), 1u) << "and the bench goes on";
}

TEST_F(Transfers, FillEveryCellOfTheMatrices) {
    TransferBench bench(gpus(), matrix_, kBytes);
    const auto pairs = matrix_.usable_pairs().size();
    for (const Method method : {Method::kLoads, Method::kStores, Method::kCopyEngine}) {
        EXPECT_EQ(measure_pairs(bench, method, false, 1).values().size(), pairs);
        EXPECT_EQ(measure_pairs(bench, method, true, 1).values().size(), pairs);
        EXPECT_EQ(measure_all_to_all(bench, method, 1).values().size(), pairs);
        const std::size_t ring = gpus().size() > 1 && pairs > 0 ? gpus().size() : 0;
        EXPECT_EQ(measure_neighbours(bench, method, 1).values().size(), ring);
    }
}

TEST_F(Transfers, LeaveOutWhatIsExcluded) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().front();
    const auto pairs = matrix_.usable_pairs().size();
    matrix_.exclude(pair, "for this test");
    TransferBench bench(gpus(), matrix_, kBytes);
    const Matrix stores = measure_pairs(bench, Method::kStores, false, 1);
    EXPECT_EQ(stores.values().size(), pairs - 1);
    EXPECT_FALSE(stores.at(pair.accessor, pair.owner));
    const Matrix loads = measure_all_to_all(bench, Method::kLoads, 1);
    EXPECT_FALSE(loads.at(pair.owner, pair.accessor)) << "data that flows the other way";
    EXPECT_EQ(loads.values().size(), pairs - 1);
}

PeerMeasurement example() {
    PeerMeasurement measurement{"a \"driver\" & <more>", true, 65536, 2, {}};
    Matrix matrix("loads, pairs", "GB/s", "from", "to", 2);
    matrix.at(0, 1) = 337.25;
    matrix.at(1, 0) = 12.5;
    measurement.matrices.push_back(matrix);
    measurement.matrices.emplace_back("nothing", "ns", "device", "memory of", 1);
    return measurement;
}

TEST(Report, SaysThatEmulatedTimesMeanNothing) {
    PeerMeasurement measurement = example();
    for (const auto& text : {to_text(measurement), to_svg(measurement)}) {
        EXPECT_THAT(text, HasSubstr("mean nothing"));
    }
    EXPECT_THAT(to_json(measurement), HasSubstr("\"meaningful\": false"));
    measurement.emulated = false;
    for (const auto& text : {to_text(measurement), to_svg(measurement)}) {
        EXPECT_THAT(text, testing::Not(HasSubstr("mean nothing")));
    }
    EXPECT_THAT(to_json(measurement), HasSubstr("\"meaningful\": true"));
}

TEST(Report, ShowsEveryCell) {
    EXPECT_THAT(to_text(example()), HasSubstr("0              -  337.2"));
    EXPECT_THAT(to_text(example()), HasSubstr("least 12.50  mean 174.9  greatest 337.2"));
    EXPECT_THAT(to_json(example()), HasSubstr("\"values\": [[null, 337.250], [12.500, null]]"));
    EXPECT_THAT(to_json(example()), HasSubstr("\"values\": [[null]]"));
    EXPECT_THAT(to_svg(example()), HasSubstr(">337</text>"));
    EXPECT_THAT(to_svg(example()), HasSubstr(">12.5</text>"));
}

TEST(Report, EscapesWhatOthersWrote) {
    EXPECT_THAT(to_json(example()), HasSubstr("\"a \\\"driver\\\" & <more>\""));
    EXPECT_THAT(to_svg(example()), HasSubstr("a &quot;driver&quot; &amp; &lt;more&gt;"));
}

}  // namespace
}  // namespace symm
