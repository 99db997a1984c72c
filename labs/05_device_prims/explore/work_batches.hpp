#pragma once
/// \file
/// Batches of work, which the host stores in a ring and the blocks of a kernel load.

#include <fmt/core.h>

#include <vector>

#include "labs/05_device_prims/shared_work/work_batch.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

struct alignas(16) Item {
    std::uint64_t number[2];
};

struct Batches {
    unsigned threads = 1, blocks = 1;
    std::uint32_t first = 0;                       ///< Item.
    std::vector<std::uint32_t> items = {4, 4, 4};  ///< Of each batch.
    std::uint32_t entries = 4;                     ///< Of the ring.
    std::uint32_t left = ~0U;  ///< The batch that the blocks leave at its second item.
    std::uint32_t channels = 2;
};

/// Each block has room for kRoom items at a time.
template <unsigned kRoom>
void work_batches(explore::Scene& scene, const Batches& batches) {
    const std::uint32_t entries = batches.entries;
    auto* const ring = scene.zeroed<Item>(entries, "ring", 0);
    auto* const consumed = scene.zeroed<std::uint32_t>(batches.channels, "consumed", 0);
    auto* const launched = scene.zeroed<std::uint32_t>(1, "launched", 1);
    std::fill_n(consumed, batches.channels, batches.first);
    const simt::Timeout host = explore::timeout_of(scene, 0);
    const simt::Timeout device = explore::timeout_of(scene, 1);
    scene.launch(0, {}, [=](const simt::ThreadBlock&) {
        simt::Waiter waiter(host);
        std::uint32_t at = batches.first;
        for (std::uint32_t b = 0; b < batches.items.size(); ++b) {
            const std::uint32_t items = batches.items[b];
            for (unsigned c = 0; c < batches.channels; ++c) {  // as WorkCounters::claim()
                if (!waiter.until({simt::Wait::kFifoSpace, 0, 1, at}, [&](std::uint64_t& seen) {
                        seen = simt::load(&consumed[c], simt::Order::kAcquire);
                        return at - static_cast<std::uint32_t>(seen) <= entries - items;
                    })) {
                    return;
                }
            }
            for (const std::uint32_t end = at + items; at != end; ++at) {
                ring[at % entries].number[0] = ring[at % entries].number[1] = at;
            }
            simt::store(launched, b + 1, simt::Order::kRelease);
        }
    });
    scene.launch(
        1, {batches.blocks, batches.threads, sizeof(Item[kRoom])},
        [=](const simt::ThreadBlock& block) {
            auto& shared = *block.shared<Item[kRoom]>();
            std::uint32_t next = batches.first;
            for (std::uint32_t b = 0; b < batches.items.size(); ++b) {
                simt::Waiter waiter(device);
                const bool is_launched =
                    waiter.until({simt::Wait::kSignal, 1, 0, b + 1}, [&](std::uint64_t& seen) {
                        seen = simt::load(launched, simt::Order::kAcquire);
                        return seen >= b + 1;
                    });
                if (block.sync_or(!is_launched)) {
                    return;
                }
                const std::uint32_t first = next;
                const std::uint32_t items = batches.items[b];
                const WorkBatch<Item> batch{items, first,    entries, batches.channels,
                                            ring,  consumed, {}};
                batch.load(block, shared);
                block.sync();
                batch.for_each(block, shared, [&](const Item& item) {
                    for (const std::uint64_t number : item.number) {
                        if (static_cast<std::uint32_t>(number) != next) {
                            explore::fail(fmt::format("item {} instead of {}", number, next));
                        }
                    }
                    ++next;
                    return b != batches.left || next == first + 1;
                });
                if (b != batches.left && next != first + items) {
                    explore::fail("not every item has run");
                }
                next = first + items;
                explore::kernel_end();
            }
        });
}

}  // namespace symm
