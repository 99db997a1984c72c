// AllToAll: every result checked, and calls that are refused.

#include "../all_to_all.hpp"

#include <algorithm>
#include <vector>

#include "checks.hpp"
#include "your_own_test.hpp"

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

}  // namespace

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

}  // namespace symm::collectives
