#pragma once
/// \file
/// What an object knows of the process that made it.
///
/// A child of fork() has copies of all its parent's objects. It lacks their threads and their GPU,
/// but shares their memory with other processes: an abort flag that the copy sets ends the parent's
/// kernels, and a thread that it joins never ends. So what owns such a thing asks first.

#include <sys/types.h>

#include <memory>
#include <utility>

namespace symm {

/// The process in which it was made. Copies keep that. (vfork() and posix_spawn() make no copies of
/// objects, and are not noticed.)
class CreatorProcess {
public:
    CreatorProcess();
    /// False in a child that fork() has made since. Costs no system call.
    [[nodiscard]] bool is_this_one() const { return forks_ == forks_so_far(); }
    pid_t id() const { return id_; }

private:
    /// How many calls of fork() lie between the first use of this and the current process.
    static unsigned forks_so_far();

    unsigned forks_;
    pid_t id_;
};

/// Owns a T. In a child of fork() its destructor does nothing: for a thread, which the child lacks,
/// and for what such a thread waits on.
template <class T>
class NotInChild {
public:
    template <class... Arguments>
    explicit NotInChild(Arguments&&... arguments)
        : value_(std::make_unique<T>(std::forward<Arguments>(arguments)...)) {}
    NotInChild(const NotInChild&) = delete;
    NotInChild& operator=(const NotInChild&) = delete;
    ~NotInChild() {
        if (!creator_.is_this_one()) {
            static_cast<void>(value_.release());
        }
    }
    T& operator*() const { return *value_; }
    T* operator->() const { return value_.get(); }

private:
    CreatorProcess creator_;
    std::unique_ptr<T> value_;
};

}  // namespace symm
