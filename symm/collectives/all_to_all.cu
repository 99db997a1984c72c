#include "all_to_all.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <symm/launch.hpp>

#include "all_to_all_kernel.hpp"

namespace symm::collectives {
namespace {

using symm::refuse_unless;

// The kernels do not depend on a type: launch_for() chooses by the number of ranks alone.
constexpr auto kPackets = []<class T, int kMost>(const AllToAllParams& call) {
    return AllToAllPackets<kMost>{call};
};
constexpr auto kWindows = []<class T, int kMost>(const AllToAllWindowsParams& call) {
    return AllToAllWindows<kMost>{call};
};
/// Parts of so many bytes are sent in turns: below, a turn's wait costs more than it gains.
constexpr std::size_t kInTurns = std::size_t{4} << 20;
constexpr symm::Types kTypes = symm::Types::kIntegers;
constexpr symm::DataType kByte = symm::DataType::kUint8;

symm::OwnNeeds needs(int ranks) {
    return {.slots_per_peer = AllToAll::kSlots, .resident = [=](unsigned threads) {
                return std::min(symm::resident_blocks_for<AllToAllParams, kTypes>(
                                    kByte, ranks, threads, kPackets),
                                symm::resident_blocks_for<AllToAllWindowsParams, kTypes>(
                                    kByte, ranks, threads, kWindows));
            }};
}

}  // namespace

AllToAll::AllToAll(symm::Communicator& communicator)
    : own_(communicator, needs(communicator.ranks())) {}

void AllToAll::operator()(const AllToAllParts& parts, CUstream stream, AllToAllWay way) const {
    const auto ranks = static_cast<std::size_t>(own_.ranks());
    // More than any memory has would wrap. Such a call is refused below.
    const bool fits =
        parts.element == 0 || (symm::is_addressable(parts.in, parts.most, parts.element * ranks) &&
                               symm::is_addressable(parts.out, parts.most, parts.element * ranks));
    const std::size_t bytes = fits ? parts.most * parts.element : 0;  // of a part
    const std::size_t all = bytes * ranks;
    const bool in_window = own_.is_in_window(parts.out, all);
    if (way == AllToAllWay::kAuto) {
        way = bytes <= kSmall || (!in_window && bytes <= kRoom) ? AllToAllWay::kPackets
                                                                : AllToAllWay::kWindows;
    }
    const bool packets = way == AllToAllWay::kPackets;
    const auto check = [&] {
        refuse_unless(fits, "an AllToAll of {} x {} bytes for each rank fits in no memory",
                      parts.most, parts.element);
        refuse_unless(bytes != 0, "an AllToAll needs parts of at least one byte");
        refuse_unless((parts.counts == 0) == (parts.received == 0),
                      "an AllToAll with counts needs room for those received");
        refuse_unless(parts.in != 0 && parts.out != 0,
                      "an AllToAll's input or output is a null pointer");
        refuse_unless(
            (parts.counts | parts.received) % sizeof(std::uint32_t) == 0,
            "an AllToAll's counts are at {:#x} and {:#x}: they have to begin at multiples "
            "of {} bytes",
            parts.counts, parts.received, sizeof(std::uint32_t));
        refuse_unless(!packets || bytes <= kRoom,
                      "parts of {} bytes do not fit into the mailbox, which holds {}", bytes,
                      kRoom);
        refuse_unless(packets || in_window,
                      "parts of {} bytes need an output in a window (Communicator::allocate)",
                      bytes);
        const std::size_t apart =
            parts.in < parts.out ? parts.out - parts.in : parts.in - parts.out;
        refuse_unless(apart >= all, "input and output of an AllToAll overlap");
    };
    const auto queue = [&] {
        symm::MailboxParams mailbox = own_.call({{kByte}, parts.in, parts.out, parts.most});
        mailbox.stride = bytes;
        const AllToAllParams call{mailbox, parts.element,
                                  reinterpret_cast<const std::uint32_t*>(parts.counts),
                                  reinterpret_cast<std::uint32_t*>(parts.received)};
        symm::LaunchShape shape = symm::shape_for(bytes / (packets ? 8 : 16) + 1, own_.most());
        if (packets) {
            symm::launch_for<kTypes>(stream, shape, kByte, own_.ranks(), call, kPackets,
                                     own_.launch_order(shape.blocks));
        } else {
            shape.blocks = std::min(shape.blocks, symm::kMaxBarrierBlocks);
            symm::launch_for<kTypes>(
                stream, shape, kByte, own_.ranks(),
                AllToAllWindowsParams{call, own_.meeting(parts.out, parts.out, all), own_.barrier(),
                                      own_.turns(), bytes >= kInTurns},
                kWindows);
        }
    };
    own_.queue(
        fmt::format("AllToAll of {} x {} bytes{}, by {}", parts.most, parts.element,
                    parts.counts != 0 ? " with counts" : "", packets ? "packets" : "windows"),
        stream, check, queue);
}

}  // namespace symm::collectives
