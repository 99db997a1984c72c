#include "labs/02_access/peer_matrix.hpp"

#include <fmt/core.h>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/table.hpp"

namespace symm {
namespace {

int p2p_attribute(CUdevice_P2PAttribute attribute, const char* name, const Pair& pair) {
    int value = 0;
    cu_check(cuDeviceGetP2PAttribute(&value, attribute, device_handle(pair.accessor),
                                     device_handle(pair.owner)),
             "cuDeviceGetP2PAttribute({}, source={}, destination={})", name, pair.accessor,
             pair.owner);
    return value;
}

PeerLink ask(const Pair& pair) {
    PeerLink link;
    link.access = can_access(pair.accessor, pair.owner);
    // cuDeviceGetP2PAttribute refuses a pair of a device with itself.
    if (link.access && pair.accessor != pair.owner) {
        link.performance =
            p2p_attribute(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, "PERFORMANCE_RANK", pair);
        link.atomics = p2p_attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                     "NATIVE_ATOMIC_SUPPORTED", pair) != 0;
    }
    return link;
}

std::string cell(const Pair& pair, const PeerLink& link) {
    if (pair.accessor == pair.owner) {
        return "own";
    }
    if (!link.access) {
        return "-";
    }
    if (!link.excluded.empty()) {
        return "EXCLUDED";
    }
    return fmt::format("yes perf {}{}", link.performance, link.atomics ? " atomics" : "");
}

}  // namespace

std::string describe(const Pair& pair) {
    return fmt::format("device {} -> memory of device {}", pair.accessor, pair.owner);
}

PeerMatrix PeerMatrix::query() {
    PeerMatrix matrix;
    matrix.devices_ = device_count();
    for (int accessor = 0; accessor < matrix.devices_; ++accessor) {
        for (int owner = 0; owner < matrix.devices_; ++owner) {
            matrix.links_[{accessor, owner}] = ask({accessor, owner});
        }
    }
    return matrix;
}

bool PeerMatrix::usable(const Pair& pair) const {
    return link(pair).access && link(pair).excluded.empty();
}

std::vector<Pair> PeerMatrix::usable_pairs() const {
    std::vector<Pair> pairs;
    for (const auto& [pair, link] : links_) {
        if (pair.accessor != pair.owner && usable(pair)) {
            pairs.push_back(pair);
        }
    }
    return pairs;
}

std::vector<int> PeerMatrix::users_of(int owner) const {
    std::vector<int> users;
    for (const auto& [pair, link] : links_) {
        if (pair.owner == owner && usable(pair)) {
            users.push_back(pair.accessor);
        }
    }
    return users;
}

std::string PeerMatrix::text() const {
    std::vector<std::string> header{"device"};
    for (int owner = 0; owner < devices_; ++owner) {
        header.push_back(fmt::format("memory of {}", owner));
    }
    TableRows table{header};
    for (int accessor = 0; accessor < devices_; ++accessor) {
        std::vector<std::string> row{std::to_string(accessor)};
        for (int owner = 0; owner < devices_; ++owner) {
            row.push_back(cell({accessor, owner}, link({accessor, owner})));
        }
        table.push_back(row);
    }
    return table_text(table);
}

}  // namespace symm
