// Both collectives on 1 to 8 ranks, every result checked; and calls that are refused.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <symm/nodes.hpp>  // not used: it is installed, too
#include <vector>

#include "../all_to_all.hpp"
#include "checks.hpp"
#include "rows_check.hpp"

namespace symm::collectives {
namespace {

using symm::Communicator;
using symm::Rank;
using symm::Stream;

/// Byte `i` of what rank `from` sends to rank `to`.
unsigned char byte(int from, int to, unsigned call, std::size_t i) {
    return static_cast<unsigned char>(31 * from + 7 * to + 101 * call + i + i / 251);
}

/// How many elements rank `from` has for rank `to`: from none to more than fit.
std::uint32_t count_of(int from, int to, unsigned call, std::size_t most) {
    return static_cast<std::uint32_t>((5 * from + 3 * to + 7 * call) % 8 * (most + 6) / 7);
}

void check_all_to_all(Rank& rank, std::size_t most, unsigned element, AllToAllWay way,
                      bool has_counts) {
    Communicator communicator(rank);
    const AllToAll all_to_all(communicator);
    const Stream stream;
    const auto ranks = static_cast<std::size_t>(rank.size());
    const std::size_t part = most * element;
    const CUdeviceptr out = communicator.allocate(ranks * part);
    const symm::DeviceMemory in(ranks * part);
    const symm::DeviceMemory counts(2 * ranks * sizeof(std::uint32_t));
    const CUdeviceptr received = counts.address() + ranks * sizeof(std::uint32_t);
    for (unsigned call = 0; call < 5; ++call) {
        std::vector<std::uint32_t> elements(2 * ranks, static_cast<std::uint32_t>(most));
        std::vector<unsigned char> bytes(ranks * part);
        for (std::size_t p = 0; p < ranks; ++p) {
            if (has_counts) {
                elements[p] = count_of(rank.rank(), static_cast<int>(p), call, most);
            }
            for (std::size_t i = 0; i < part; ++i) {
                bytes[p * part + i] = byte(rank.rank(), static_cast<int>(p), call, i);
            }
        }
        symm::copy_to_device(in.address(), bytes.data(), bytes.size());
        symm::copy_to_device(counts.address(), elements.data(),
                             elements.size() * sizeof(std::uint32_t));
        symm::fill(out, 0xff, bytes.size());
        rank.bootstrap().barrier("outputs are overwritten");
        AllToAllParts parts{in.address(), out, most, element};
        if (has_counts) {
            parts.counts = counts.address();
            parts.received = received;
        }
        all_to_all(parts, stream.get(), way);
        communicator.synchronize(stream, "the AllToAll");
        symm::copy_to_host(bytes.data(), out, bytes.size());
        symm::copy_to_host(elements.data(), counts.address(),
                           elements.size() * sizeof(std::uint32_t));
        for (std::size_t q = 0; q < ranks; ++q) {
            const auto from = static_cast<int>(q);
            const std::uint32_t sent = has_counts ? count_of(from, rank.rank(), call, most)
                                                  : static_cast<std::uint32_t>(most);
            require(elements[ranks + q] == sent, "rank {} received {} elements from {}, not {}",
                    rank.rank(), elements[ranks + q], q, sent);
            const std::size_t arrived = std::min<std::size_t>(sent, most) * element;
            for (std::size_t i = 0; i < part; ++i) {
                const unsigned char expected =
                    i < arrived ? byte(from, rank.rank(), call, i) : 0xff;
                require(bytes[q * part + i] == expected,
                        "call {} on rank {}: byte {} from rank {} is {}, not {}", call, rank.rank(),
                        i, q, bytes[q * part + i], expected);
            }
        }
    }
    rank.bootstrap().barrier("done");
}

void all_to_all_refuses(Rank& rank) {
    Communicator communicator(rank);
    const AllToAll all_to_all(communicator);
    const Stream stream;
    const CUdeviceptr window = communicator.allocate(4096);
    const symm::DeviceMemory memory(4 * AllToAll::kRoom);
    const auto call = [&](CUdeviceptr in, CUdeviceptr out, std::size_t bytes, AllToAllWay way) {
        return [=, &all_to_all, &stream] { all_to_all({in, out, bytes}, stream.get(), way); };
    };
    refuses("overlap", call(window, window + 64, 100, AllToAllWay::kAuto));
    refuses("at least one byte", call(memory.address(), window, 0, AllToAllWay::kAuto));
    refuses("need an output in a window",
            call(window, memory.address(), 100, AllToAllWay::kWindows));
    refuses("do not fit into the mailbox",
            call(window, memory.address(), AllToAll::kRoom + 1, AllToAllWay::kPackets));
    refuses("needs room for those received", [&] {
        all_to_all({memory.address(), window, 8, 1, memory.address(), 0}, stream.get());
    });
    for (const std::size_t most : {~std::size_t{0}, ~std::size_t{0} / 2, std::size_t{1} << 57}) {
        refuses("fits in no memory", call(memory.address(), window, most, AllToAllWay::kAuto));
    }
    refuses("null pointer", call(0, window, 100, AllToAllWay::kAuto));
    for (const CUdeviceptr odd : {1, 2}) {
        const auto counted = [&](CUdeviceptr counts, CUdeviceptr received) {
            return [=, &all_to_all, &memory, &stream] {
                all_to_all({memory.address(), window, 8, 1, counts, received}, stream.get());
            };
        };
        const CUdeviceptr numbers = memory.address() + 1024;
        refuses("multiples of 4 bytes", counted(numbers + odd, numbers + 64));
        refuses("multiples of 4 bytes", counted(numbers, numbers + 64 + odd));
    }
    call(memory.address(), window, 100, AllToAllWay::kAuto)();  // and the next call is possible
    communicator.synchronize(stream, "the AllToAll");
    rank.bootstrap().barrier("done");
}

/// With SYMM_CHECK=1 the ranks' calls are compared.
void all_to_all_compares(Rank& rank) {
    Communicator communicator(rank);
    const AllToAll all_to_all(communicator);
    const Stream stream;
    const CUdeviceptr window = communicator.allocate(4096);
    const symm::DeviceMemory memory(4096);
    refuses("calls differ: rank 0 makes call 1: AllToAll of 100 x 1 bytes", [&] {
        all_to_all({memory.address(), window, rank.rank() == 1 ? 99U : 100U}, stream.get());
    });
    rank.bootstrap().barrier("done");
}

void test_all_to_all(int ranks) {
    on_ranks(ranks, [](Rank& rank) {
        for (const AllToAllWay way : {AllToAllWay::kPackets, AllToAllWay::kWindows}) {
            for (const bool has_counts : {false, true}) {
                check_all_to_all(rank, 1, 1, way, has_counts);
                check_all_to_all(rank, 77, 4, way, has_counts);
                check_all_to_all(rank, 1024, 16, way, has_counts);
            }
        }
    });
    on_ranks(ranks, all_to_all_refuses);
    if (ranks > 1) {
        const Variable check("SYMM_CHECK", "1");
        on_ranks(ranks, all_to_all_compares);
    }
}

void check_rms_norm(Rank& rank, symm::DataType type, unsigned rows, unsigned hidden,
                    bool in_windows = true) {
    Communicator communicator(rank);
    const auto without_context = [&] {
        const symm::CurrentContext none(nullptr);
        return AllReduceRmsNorm(communicator);
    };
    const AllReduceRmsNorm rms_norm = without_context();
    const Stream stream;
    CheckedRows checked(rank, communicator, type, rows, hidden, in_windows);
    unsigned call = 0;
    // An x that holds the sentinel arrives, too.
    checked.fill(++call);
    symm::fill(checked.rows().x, 0xff, 64);
    rms_norm(checked.rows(), stream.get(), RmsNormWay::kPacks);
    communicator.synchronize(stream, "the RMSNorm of NaNs");
    for (int round = 0; round < 3; ++round) {
        for (const RmsNormWay way :
             {RmsNormWay::kPacks, RmsNormWay::kOneShot, RmsNormWay::kTwoShots, RmsNormWay::kAuto}) {
            if (!in_windows && way != RmsNormWay::kPacks && way != RmsNormWay::kAuto) {
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
    });
    on_ranks(ranks, rms_norm_refuses);
    if (ranks > 1) {
        const Variable check("SYMM_CHECK", "1");
        on_ranks(ranks, rms_norm_compares);
    }
}

}  // namespace
}  // namespace symm::collectives

int main(int argc, char** argv) {
    using namespace symm::collectives;
    try {
        const int most = argc > 1 ? std::atoi(argv[1]) : 8;
        for (int ranks = 1; ranks <= most; ++ranks) {
            test_all_to_all(ranks);
            test_rms_norm(ranks);
            fmt::print("{} ranks: right\n", ranks);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
