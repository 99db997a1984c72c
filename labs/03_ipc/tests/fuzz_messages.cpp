// A libFuzzer target for everything that a process parses of another's messages: what decode()
// accepts survives being encoded and decoded again. The rest (sizes, handles, texts) is taken as
// bytes, once their number is right.
//
//     ninja -C build/asan 03_ipc_fuzz; build/asan/bin/03_ipc_fuzz -max_total_time=60

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "common/bootstrap/message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto packet = std::as_bytes(std::span(data, size));
    std::string why_not;
    const auto message = symm::decode(packet, why_not);
    if (message) {
        // All fields are equal. After a name's end and in the reserved word, any bytes are allowed.
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
