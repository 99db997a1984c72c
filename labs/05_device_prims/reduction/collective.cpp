#include "labs/05_device_prims/reduction/collective.hpp"

#include "common/sys/named.hpp"

namespace symm {
namespace {

constexpr std::array<std::string_view, 5> kNames{"allreduce", "reducescatter", "allgather",
                                                 "broadcast", "reduce"};
constexpr std::array<std::string_view, 5> kTitles{"AllReduce", "ReduceScatter", "AllGather",
                                                  "Broadcast", "Reduce"};

}  // namespace

std::string_view name_of(Collective collective) {
    return name_among(kNames, "Collective", collective);
}

std::string_view title_of(Collective collective) {
    return name_among(kTitles, "Collective", collective);
}

Collective collective_named(std::string_view name) {
    return named<Collective>(kNames, "--collective", name);
}

void require_known(Collective collective) {
    require_named(kNames, "Collective", collective);
}

}  // namespace symm
