#pragma once
/// \file
/// A host thread that works for kernels: the proxy's, and the one that receives TCP.

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace symm {

/// Runs a function in a thread until the owner is destroyed. Declare it last, so that the thread
/// has ended before what it uses is destroyed.
class ServiceThread {
public:
    /// `body` gets this object, and returns soon after stopping() has become true. If it throws,
    /// failure() keeps the text, and `on_failure` is called: it should abort kernels that would
    /// wait in vain.
    ServiceThread(std::function<void(const ServiceThread&)> body, std::function<void()> on_failure)
        : thread_([this, body = std::move(body), on_failure = std::move(on_failure)] {
              try {
                  body(*this);
              } catch (const std::exception& error) {
                  {
                      const std::lock_guard lock(mutex_);
                      failure_ = error.what();
                  }
                  on_failure();
              }
          }) {}
    ServiceThread(const ServiceThread&) = delete;
    ~ServiceThread() {
        stopping_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

    bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
    /// The error that ended the thread; empty if none has.
    std::string failure() const {
        const std::lock_guard lock(mutex_);
        return failure_;
    }

private:
    std::atomic<bool> stopping_{false};
    mutable std::mutex mutex_;
    std::string failure_;  ///< Guarded by the mutex.
    std::thread thread_;
};

}  // namespace symm
