#pragma once
/// \file
/// The owner of a stream, and a wait for it that ends.

#include <cuda.h>

#include <functional>
#include <string_view>
#include <utility>

#include "common/sys/deadline.hpp"

namespace symm {

/// Owns a non-blocking stream of the context current at construction. Move-only.
class Stream {
public:
    Stream();
    Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Stream& operator=(Stream&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream();

    CUstream get() const { return stream_; }
    /// True once everything queued has run. Throws CudaError for work that failed.
    bool finished() const;
    /// Waits for everything queued. Throws CudaError for work that failed, std::runtime_error
    /// saying what was waited for when the deadline passes first. Where it takes long, `meanwhile`
    /// is called some hundred times a second; what it throws ends the wait.
    void synchronize(std::string_view what = "the stream", Deadline deadline = Deadline::standard(),
                     const std::function<void()>& meanwhile = {}) const;

private:
    CUstream stream_ = nullptr;
};

}  // namespace symm
