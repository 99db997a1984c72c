// For libFuzzer, all that a process parses of what another sends: whatever decode() accepts survives being
// encoded and decoded again, and whatever unpack_range_descriptor() accepts leads to a stride that has room for it. What
// else travels (numbers of processes, handles, texts) is taken as bytes, once their number is right.
//
//     ninja -C build/asan 03_ipc_fuzz; build/asan/bin/03_ipc_fuzz -max_total_time=60

#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>

#include "common/bootstrap/message.hpp"
#include "labs/03_ipc/range_descriptor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto packet = std::as_bytes(std::span(data, size));
    try {
        const symm::RangeDescriptor descriptor = symm::unpack_range_descriptor(packet);
        if (symm::agreed_stride({descriptor, descriptor}) < descriptor.total()) {
            std::abort();  // its memory would reach into the next rank's
        }
    } catch (const std::runtime_error&) {     // no descriptor,
    } catch (const std::invalid_argument&) {  // or an impossible one: nothing else is thrown
    }
    std::string why_not;
    const auto message = symm::decode(packet, why_not);
    if (message) {
        // Equal in all that is a field; behind a name's end and in the reserved word anything may
        // stand.
        const auto again = symm::decode(symm::encode(*message), why_not);
        if (!again || again->payload != message->payload || again->name != message->name ||
            again->rank != message->rank || again->number != message->number) {
            std::abort();
        }
    } else if (why_not.empty()) {
        std::abort();
    }
    return 0;
}
