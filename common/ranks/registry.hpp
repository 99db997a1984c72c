#pragma once
/// \file
/// How ranks that are threads of one process share an object: one rank registers it, sends its
/// number to the others, and they find it by that number.
///
/// A pointer would not do: the rank that owns the object may fail, and destroy it, before the
/// others have used the pointer.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace symm {

/// Objects of this process, found by number while they have an owner. Safe from any thread.
class Registry {
public:
    /// Registers an object for as long as the entry lives, without owning it. number() is 0 if
    /// the pointer is null.
    class Entry {
    public:
        explicit Entry(const std::shared_ptr<void>& object) {
            const std::lock_guard lock(all().mutex);
            if (object) {
                number_ = ++all().last;
                all().objects.emplace(number_, object);
            }
        }
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        ~Entry() {
            const std::lock_guard lock(all().mutex);
            all().objects.erase(number_);
        }
        std::uint64_t number() const { return number_; }

    private:
        std::uint64_t number_ = 0;
    };

    /// The object with this number; null if there is none, or it has lost its owner.
    static std::shared_ptr<void> find(std::uint64_t number) {
        const std::lock_guard lock(all().mutex);
        const auto found = all().objects.find(number);
        return found == all().objects.end() ? nullptr : found->second.lock();
    }

private:
    struct All {
        std::mutex mutex;
        std::map<std::uint64_t, std::weak_ptr<void>> objects;
        std::uint64_t last = 0;
    };
    static All& all() {
        static All& kept = *new All;  // outlives every owner with static storage
        return kept;
    }
};

}  // namespace symm
