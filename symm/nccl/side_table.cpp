#include "symm/nccl/side_table.hpp"

#include <mutex>
#include <unordered_map>

namespace symm::drop_in {
namespace {

struct Table {
    std::mutex mutex;
    std::unordered_map<ncclComm*, std::shared_ptr<Entry>> entries;
};

Table& table() {
    static Table& kept = *new Table;  // programs may end with communicators
    return kept;
}

}  // namespace

std::shared_ptr<Entry> known_entry(ncclComm* comm) {
    const std::lock_guard lock(table().mutex);
    const auto found = table().entries.find(comm);
    return found == table().entries.end() ? nullptr : found->second;
}

std::shared_ptr<Entry> entry_of(ncclComm* comm) {
    if (auto known = known_entry(comm)) {
        return known;
    }
    Place place{comm, 0, 0, 0};
    if (pnccl::CommCount(comm, &place.ranks) != kSuccess ||
        pnccl::CommUserRank(comm, &place.rank) != kSuccess ||
        pnccl::CommCuDevice(comm, &place.device) != kSuccess) {
        return nullptr;  // NCCL's own call says what is wrong
    }
    auto made = std::make_shared<Entry>(place);
    const std::lock_guard lock(table().mutex);
    return table().entries.try_emplace(comm, std::move(made)).first->second;
}

std::shared_ptr<Entry> forget(ncclComm* comm) {
    const std::lock_guard lock(table().mutex);
    const auto found = table().entries.extract(comm);
    return found ? found.mapped() : nullptr;
}

}  // namespace symm::drop_in
