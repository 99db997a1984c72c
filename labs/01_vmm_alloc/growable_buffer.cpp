#include "labs/01_vmm_alloc/growable_buffer.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "labs/01_vmm_alloc/device_buffer.hpp"

namespace symm {

GrowableBuffer::GrowableBuffer(int device, std::size_t capacity, unsigned long long handle_types)
    : properties_(device_memory(device, handle_types)),
      unit_(granularity(properties_)),
      range_(round_up(capacity, unit_)) {}

void GrowableBuffer::resize(std::size_t bytes) {
    if (bytes > capacity()) {
        throw std::length_error(fmt::format(
            "a buffer with room for {} bytes cannot grow to {}: reserve more when making it",
            capacity(), bytes));
    }
    const std::size_t wanted = round_up(bytes, unit_);
    if (wanted > size()) {
        grow(wanted - size());
    } else {
        shrink(wanted);
    }
}

void GrowableBuffer::grow(std::size_t by) {
    pieces_.reserve(pieces_.size() + 1);  // the last step below must not fail
    const CUdeviceptr at = base() + size();
    Piece piece;
    piece.memory = PhysicalMemory::create(properties_, by);
    piece.mapping = Mapping(at, by, piece.memory);
    give_access(at, by, properties_.location.id);
    pieces_.push_back(std::move(piece));
}

void GrowableBuffer::shrink(std::size_t to) {
    while (!pieces_.empty() && size() - pieces_.back().mapping.size() >= to) {
        pieces_.back().mapping.close();  // refused: the piece is still whole
        Piece gone = std::move(pieces_.back());
        pieces_.pop_back();
        gone.memory.close();
    }
}

}  // namespace symm
