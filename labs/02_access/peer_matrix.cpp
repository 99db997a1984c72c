#include "labs/02_access/peer_matrix.hpp"

#include <stdexcept>

#include "common/cli/table.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"

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
    // The driver refuses questions about a device and itself: there is no link to describe.
    if (pair.accessor == pair.owner) {
        link.access = link.atomics = true;
        return link;
    }
    link.access = can_access(pair.accessor, pair.owner);
    if (link.access) {
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

PeerMatrix::PeerMatrix(int devices)
    : devices_(devices),
      links_(static_cast<std::size_t>(devices) * static_cast<std::size_t>(devices)) {}

PeerMatrix PeerMatrix::query() {
    PeerMatrix matrix(device_count());
    for (int accessor = 0; accessor < matrix.devices_; ++accessor) {
        for (int owner = 0; owner < matrix.devices_; ++owner) {
            matrix.at({accessor, owner}) = ask({accessor, owner});
        }
    }
    return matrix;
}

PeerLink& PeerMatrix::at(const Pair& pair) {
    for (const int device : {pair.accessor, pair.owner}) {
        if (device < 0 || device >= devices_) {
            throw std::out_of_range(
                fmt::format("there is no device {}: the peer matrix has {}, numbered from 0",
                            device, devices_));
        }
    }
    return links_[static_cast<std::size_t>(pair.accessor * devices_ + pair.owner)];
}

const PeerLink& PeerMatrix::link(const Pair& pair) const {
    return const_cast<PeerMatrix*>(this)->at(pair);
}

void PeerMatrix::exclude(const Pair& pair, const std::string& reason) {
    PeerLink& link = at(pair);
    if (pair.accessor == pair.owner) {
        throw std::invalid_argument(
            fmt::format("device {} cannot be excluded from its own memory", pair.owner));
    }
    if (link.excluded.empty()) {
        link.excluded = reason.empty() ? "as asked" : reason;
    }
}

template <class Condition>
std::vector<Pair> PeerMatrix::pairs_where(const Condition& condition) const {
    std::vector<Pair> pairs;
    for (int accessor = 0; accessor < devices_; ++accessor) {
        for (int owner = 0; owner < devices_; ++owner) {
            if (accessor != owner && condition(link({accessor, owner}))) {
                pairs.push_back({accessor, owner});
            }
        }
    }
    return pairs;
}

std::vector<Pair> PeerMatrix::usable_pairs() const {
    return pairs_where([](const PeerLink& link) { return link.usable(); });
}

std::vector<Pair> PeerMatrix::excluded_pairs() const {
    return pairs_where([](const PeerLink& link) { return !link.excluded.empty(); });
}

std::vector<int> PeerMatrix::users_of(int owner) const {
    std::vector<int> users;
    for (int accessor = 0; accessor < devices_; ++accessor) {
        if (usable({accessor, owner})) {
            users.push_back(accessor);
        }
    }
    return users;
}

std::string PeerMatrix::text() const {
    std::vector<std::string> header{"device"};
    for (int owner = 0; owner < devices_; ++owner) {
        header.push_back(fmt::format("memory of {}", owner));
    }
    Table table(header);
    for (int accessor = 0; accessor < devices_; ++accessor) {
        std::vector<std::string> row{std::to_string(accessor)};
        for (int owner = 0; owner < devices_; ++owner) {
            const Pair pair{accessor, owner};
            row.push_back(cell(pair, link(pair)));
        }
        table.add(row);
    }
    std::string text = table.text();
    for (const Pair& pair : excluded_pairs()) {
        text += fmt::format("not used: {}: {}\n", describe(pair), link(pair).excluded);
    }
    return text;
}

}  // namespace symm
