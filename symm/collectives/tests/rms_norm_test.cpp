// AllReduce with RMSNorm: every result checked, and calls that are refused.

#include <bit>
#include <cmath>
#include <functional>

#include "checks.hpp"
#include "rows_check.hpp"
#include "your_own_test.hpp"

namespace symm::collectives {
namespace {

using symm::Communicator;
using symm::Rank;
using symm::Stream;

void check_rms_norm(Rank& rank, symm::DataType type, unsigned rows, unsigned hidden,
                    bool in_windows = true, const RowsOptions& options = {}) {
    Communicator communicator(rank);
    const auto without_context = [&] {
        const symm::CurrentContext none(nullptr);
        return AllReduceRmsNorm(communicator);
    };
    const AllReduceRmsNorm rms_norm = without_context();
    const Stream stream;
    CheckedRows checked(rank, communicator, type, rows, hidden, in_windows, options);
    unsigned call = 0;
    // An x that holds the sentinel arrives, too.
    checked.fill(++call);
    symm::fill(checked.rows().x, 0xff, 64);
    rms_norm(checked.rows(), stream.get(), RmsNormWay::kPacks);
    communicator.synchronize(stream, "the RMSNorm of NaNs");
    for (int round = 0; round < 3; ++round) {
        for (const RmsNormWay way :
             {RmsNormWay::kPacks, RmsNormWay::kOneShot, RmsNormWay::kTwoShots, RmsNormWay::kAuto}) {
            const bool is_possible = in_windows
                                         ? way != RmsNormWay::kTwoShots || options.residual
                                         : way == RmsNormWay::kPacks || way == RmsNormWay::kAuto;
            if (!is_possible) {
                continue;
            }
            checked.fill(++call);
            rms_norm(checked.rows(), stream.get(), way);
            communicator.synchronize(stream, "the RMSNorm");
            checked.check(call);
            rank.bootstrap().barrier("results are checked");
        }
    }
}

void rms_norm_refuses(Rank& rank) {
    Communicator communicator(rank);
    const AllReduceRmsNorm rms_norm(communicator);
    const Stream stream;
    const CheckedRows checked(rank, communicator, symm::DataType::kHalf, 3, 1024);
    const auto refuse = [&](std::string_view text, const std::function<void(RmsNormRows&)>& change,
                            RmsNormWay way = RmsNormWay::kAuto) {
        RmsNormRows rows = checked.rows();
        change(rows);
        refuses(text, [&] { rms_norm(rows, stream.get(), way); });
    };
    refuse("512 to 16384 elements, in whole 16 bytes, not 1020 half",
           [](RmsNormRows& rows) { rows.hidden = 1020; });
    refuse("not 256 half", [](RmsNormRows& rows) { rows.hidden = 256; });
    refuse("not 32768 half", [](RmsNormRows& rows) { rows.hidden = 32768; });
    refuse("1 to 8192 rows, not 0", [](RmsNormRows& rows) { rows.rows = 0; });
    refuse("RMSNorm's residual is at 0x", [](RmsNormRows& rows) { rows.residual += 2; });
    refuse("RMSNorm's weight is at 0x0", [](RmsNormRows& rows) { rows.weight = 0; });
    refuse("RMSNorm's x and out overlap", [](RmsNormRows& rows) { rows.out = rows.x + 2048; });
    refuse("takes float, half and bfloat16, not int32",
           [](RmsNormRows& rows) { rows.type = symm::DataType::kInt32; });
    refuse("epsilon is at least 0, not -1", [](RmsNormRows& rows) { rows.epsilon = -1; });
    refuse("weight_offset is nan", [](RmsNormRows& rows) { rows.weight_offset = std::nanf(""); });
    refuse("RMSNorm's bias is at 0x", [](RmsNormRows& rows) { rows.bias = 8; });
    refuse("RMSNorm's out_scale is at 0x", [](RmsNormRows& rows) { rows.out_scale = 2; });
    refuse("RMSNorm's x and out_scale overlap", [](RmsNormRows& rows) { rows.out_scale = rows.x; });
    refuse("RMSNorm's weight and bias overlap", [](RmsNormRows& rows) {
        rows.bias = rows.weight + 2048;  // of halves it would not
        rows.float_weights = true;
    });
    refuse(
        "by two shots needs a residual", [](RmsNormRows& rows) { rows.residual = 0; },
        RmsNormWay::kTwoShots);
    const symm::DeviceMemory no_window(1 << 16);
    refuse(
        "by one shot needs x in a window", [&](RmsNormRows& rows) { rows.x = no_window.address(); },
        RmsNormWay::kOneShot);
    refuse(
        "by two shots needs x and residual in windows",
        [&](RmsNormRows& rows) { rows.residual = no_window.address(); }, RmsNormWay::kTwoShots);
    rms_norm(checked.rows(), stream.get());  // and the next call is possible
    communicator.synchronize(stream, "the RMSNorm");
    rank.bootstrap().barrier("done");
}

void rms_norm_compares(Rank& rank) {
    Communicator communicator(rank);
    const AllReduceRmsNorm rms_norm(communicator);
    const Stream stream;
    const CheckedRows checked(rank, communicator, symm::DataType::kFloat, 2, 512);
    RmsNormRows rows = checked.rows();
    rows.epsilon = rank.rank() == 1 ? 1e-6F : 1e-5F;
    refuses(
        "calls differ: rank 0 makes call 1: AllReduce and RMSNorm of 2 x 512 float, epsilon "
        "1e-05, by auto; rank 1 makes call 1: AllReduce and RMSNorm of 2 x 512 float, epsilon "
        "1e-06",
        [&] { rms_norm(rows, stream.get()); });
    rank.bootstrap().barrier("done");
}

}  // namespace

void test_rms_norm(int ranks) {
    on_ranks(ranks, [](Rank& rank) {
        check_rms_norm(rank, symm::DataType::kFloat, 1, 512);
        check_rms_norm(rank, symm::DataType::kBfloat16, 7, 4096);
        check_rms_norm(rank, symm::DataType::kHalf, 33, 1032);
        if (rank.size() <= 2) {
            check_rms_norm(rank, symm::DataType::kFloat, 9, 16384);
        }
        if (rank.size() == 8) {  // two launches of packs
            check_rms_norm(rank, symm::DataType::kBfloat16, 65, 4096, false);
        }
        check_rms_norm(rank, symm::DataType::kHalf, 3, 1032, true,
                       {.residual = false, .weight_offset = 1, .float8 = true});
        check_rms_norm(rank, symm::DataType::kFloat, 5, 2048, rank.size() % 2 == 0,
                       {.residual = false, .bias = true});
        check_rms_norm(rank, symm::DataType::kBfloat16, rank.size() == 8 ? 65 : 2, 4096, false,
                       {.float_weights = true, .weight_offset = 1, .bias = true, .float8 = true});
        if (std::has_single_bit(static_cast<unsigned>(rank.size()))) {
            check_batch_invariance(rank, rank.size() == 2 ? 8192 : rank.size() == 8 ? 2048 : 2052);
        }
    });
    on_ranks(ranks, rms_norm_refuses);
    if (ranks > 1) {
        const Variable check("SYMM_CHECK", "1");
        on_ranks(ranks, rms_norm_compares);
    }
}

}  // namespace symm::collectives
