#include "labs/05_device_prims/ring/ring_request.hpp"

#include "common/sys/named.hpp"

namespace symm {
namespace {

constexpr std::array<std::string_view, 3> kProtocolNames{"simple", "ll", "ll128"};
constexpr std::array<std::string_view, 2> kMemoryNames{"peer", "host"};

}  // namespace

std::string_view name_of(Protocol protocol) {
    return name_among(kProtocolNames, "Protocol", protocol);
}
std::string_view name_of(RingMemory memory) {
    return name_among(kMemoryNames, "RingMemory", memory);
}
void require_known(const RingRequest& call) {
    require_known(call.collective);
    require_named(kProtocolNames, "Protocol", call.protocol);
    require_known(call.type, call.op);
}
Protocol protocol_named(std::string_view name) {
    return named<Protocol>(kProtocolNames, "--protocol", name);
}
RingMemory ring_memory_named(std::string_view name) {
    return named<RingMemory>(kMemoryNames, "--memory", name);
}

}  // namespace symm
