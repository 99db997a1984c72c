#pragma once
/// \file
/// The chunks of a buffer, one per rank: where each begins, and how long it is.
///
/// | chunk        | begins at element  | elements                  |
/// |--------------|--------------------|---------------------------|
/// | i            | i x ceil(count/n)  | ceil(count/n)             |
/// | the last one | the same           | what is left, maybe none  |
///
/// Model of Open MPI's reduce_scatter (README.md, "B.8").

#include <algorithm>
#include <cstddef>

namespace symm::bugs_that_shipped {

/// A part of a buffer, in bytes.
struct ByteRange {
    std::size_t offset;
    std::size_t bytes;
};

/// Chunk `i` of `chunks`, in a buffer of `count` elements of `element_bytes` each.
inline ByteRange chunk_range(std::size_t count, std::size_t element_bytes, int chunks, int i) {
    const std::size_t most = (count + chunks - 1) / chunks;
    const std::size_t begin = std::min(most * i, count);
    const std::size_t elements = std::min(most, count - begin);
    return {begin * element_bytes, elements * element_bytes};
}

}  // namespace symm::bugs_that_shipped
