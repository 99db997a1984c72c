#pragma once
/// \file
/// The owner of a stream, and a wait for it with a deadline.

#include <cuda.h>

#include <functional>
#include <string_view>

#include "common/sys/deadline.hpp"
#include "common/sys/owner.hpp"

namespace symm {

/// Owns a non-blocking stream of the context current at construction. Move-only.
///
/// On a GPU, a stream's first work may be held back until running kernels have ended. If one of
/// them waits for that work, both wait for ever. So the constructor launches an empty kernel, and
/// waits for it: make the streams of all ranks on a GPU before any of their kernels waits for
/// another.
class Stream : public Owner<Stream, CUstream> {
public:
    Stream();

    CUstream get() const { return value_; }
    /// True once everything queued has run. Throws CudaError for work that failed.
    [[nodiscard]] bool finished() const;
    /// Waits for everything queued. Throws CudaError for work that failed; if the deadline
    /// passes first, std::runtime_error that names `what`. In long waits `meanwhile` is called
    /// about a hundred times per second; an exception from it ends the wait.
    void synchronize(std::string_view what = "the stream", Deadline deadline = Deadline::standard(),
                     const std::function<void()>& meanwhile = {}) const;

    static void give_back(CUstream stream);

private:
    void do_first_work() const;
};

}  // namespace symm
