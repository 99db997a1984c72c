#pragma once
/// \file
/// What the caller of a window promises, on which the choice of an algorithm depends.

namespace symm {

/// What a caller promises of a window.
enum class WindowKind {
    kPlain,  ///< Nothing: each rank calls at offsets of its own.
    /// In each call all ranks' buffers lie at the same offsets of the same windows. NCCL asks for
    /// this promise too (NCCL_WIN_COLL_SYMMETRIC). Here only the copy engine needs it.
    kSymmetric
};

}  // namespace symm
