#pragma once
/// \file
/// How ranks that are threads of one process hand each other an object: by a number.
///
/// A pointer would be shorter, but the rank that made the object may fail, and take it along,
/// before the others have looked.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace symm {

/// Things of this process that can be found by their number while somebody owns them. Safe from any
/// thread.
class Registry {
public:
    /// Puts a thing there, owned by others, for as long as this lives. Without a thing the number
    /// is 0.
    class Place {
    public:
        explicit Place(const std::shared_ptr<void>& thing)
            : number_(thing ? instance().put(thing) : 0) {}
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() { instance().remove(number_); }
        std::uint64_t number() const { return number_; }

    private:
        const std::uint64_t number_;
    };

    /// The thing with this number; null where there is none, or nobody owns it any more.
    static std::shared_ptr<void> find(std::uint64_t number) {
        Registry& registry = instance();
        const std::lock_guard lock(registry.mutex_);
        const auto found = registry.things_.find(number);
        return found == registry.things_.end() ? nullptr : found->second.lock();
    }

private:
    static Registry& instance() {
        static Registry registry;
        return registry;
    }
    std::uint64_t put(const std::shared_ptr<void>& thing) {
        const std::lock_guard lock(mutex_);
        things_.emplace(++last_, thing);
        return last_;
    }
    void remove(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        things_.erase(number);
    }

    std::mutex mutex_;
    std::map<std::uint64_t, std::weak_ptr<void>> things_;
    std::uint64_t last_ = 0;
};

}  // namespace symm
