#pragma once
/// \file
/// The owner of a stream, and a wait for it that ends.

#include <cuda.h>

#include <functional>
#include <string_view>

#include "common/sys/deadline.hpp"
#include "common/sys/owner.hpp"

namespace symm {

/// Owns a non-blocking stream of the context current at construction. Move-only.
class Stream : public Owner<Stream, CUstream> {
public:
    Stream();

    CUstream get() const { return value_; }
    /// True once everything queued has run. Throws CudaError for work that failed.
    bool finished() const;
    /// Waits for everything queued. Throws CudaError for work that failed, std::runtime_error
    /// saying what was waited for when the deadline passes first. Where it takes long, `meanwhile`
    /// is called some hundred times a second; what it throws ends the wait.
    void synchronize(std::string_view what = "the stream", Deadline deadline = Deadline::standard(),
                     const std::function<void()>& meanwhile = {}) const;

    static void give_back(CUstream stream);
};

}  // namespace symm
