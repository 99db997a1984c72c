#pragma once
/// \file
/// The base of all owners of a handle: they can be moved, not copied, and give it back once.
///
/// \code
/// class Event : public Owner<Event, CUevent> {
/// public:
///     Event();                                   // calls cuEventCreate and sets value_
///     static void give_back(CUevent event) {     // the only place that destroys an event
///         cu_check(cuEventDestroy(event), "cuEventDestroy()");
///     }
/// };
/// \endcode
///
/// Source: the wrappers of CCCL (cuda::stream, cuda::event) have explicit construction, move by
/// exchange and release() too.

#include <cstddef>
#include <utility>

namespace symm {

/// What give_back() throws if the handle is gone with all others, because the program is ending (an
/// owner with static storage finds that) or is a child of fork(). There is nothing to report then.
struct IsGone {};

namespace detail {
/// Writes the exception that is being handled to the log.
void log_current_exception() noexcept;
}  // namespace detail

/// A handle and the number of bytes that it stands for.
template <class Handle>
struct Sized {
    Handle handle{};
    std::size_t bytes = 0;
    friend bool operator==(const Sized&, const Sized&) = default;
};

/// The base of a class `Self` that owns a `Value`. Empty holds Self::none(), which is `Value{}`
/// unless Self declares another. Self declares `static void give_back(Value)`, which may throw.
template <class Self, class Value>
class Owner {
public:
    Owner() = default;
    Owner(Owner&& other) noexcept : value_(std::exchange(other.value_, Self::none())) {}
    /// Swaps the two values, so `other` gives the old one back when it is destroyed. An object with
    /// several owners as members then gives all its old values back in the order of destruction.
    Owner& operator=(Owner&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }

    explicit operator bool() const { return !(value_ == Self::none()); }
    /// Hands the value to the caller, who gives it back.
    [[nodiscard]] Value release() { return std::exchange(value_, Self::none()); }
    /// Gives the value back now. Throws what give_back() throws; the value is then still owned, and
    /// the destructor tries once more.
    void close() {
        if (*this) {
            Self::give_back(value_);
            value_ = Self::none();
        }
    }
    /// Gives the value back now, as the destructor does: a failure is logged.
    void reset() noexcept {
        try {
            close();
        } catch (...) {
            detail::log_current_exception();
            value_ = Self::none();
        }
    }

protected:
    explicit Owner(Value value) noexcept : value_(std::move(value)) {}
    ~Owner() { reset(); }
    static Value none() { return Value{}; }

    Value value_ = Self::none();
};

}  // namespace symm
