#pragma once
/// \file
/// A host thread that works for kernels: the proxy's, and the one that receives TCP.

#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "common/sys/creator_process.hpp"

namespace symm {

/// Runs a function in a thread until the owner is destroyed. Declare it last, so that the thread
/// has ended before what it uses is destroyed. A child of fork() has no such thread, and waits for
/// none.
class ServiceThread {
public:
    /// `body` returns soon after it is asked to stop. If it throws, failure() keeps the text, and
    /// `on_failure` is called: it should abort kernels that would wait in vain.
    ServiceThread(std::function<void(const std::stop_token&)> body,
                  std::function<void()> on_failure)
        : thread_([this, body = std::move(body),
                   on_failure = std::move(on_failure)](const std::stop_token& stop) {
              try {
                  body(stop);
              } catch (const std::exception& error) {
                  {
                      const std::lock_guard lock(mutex_);
                      failure_ = error.what();
                  }
                  on_failure();
              }
          }) {}

    /// The error that ended the thread; empty if none has.
    std::string failure() const {
        const std::lock_guard lock(mutex_);
        return failure_;
    }

private:
    mutable std::mutex mutex_;
    std::string failure_;  ///< Guarded by the mutex.
    NotInChild<std::jthread> thread_;
};

}  // namespace symm
