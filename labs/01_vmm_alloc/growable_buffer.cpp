#include "labs/01_vmm_alloc/growable_buffer.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

GrowableBuffer::GrowableBuffer(int device, std::size_t capacity)
    : device_(device),
      unit_(granularity(device_memory(device))),
      range_(round_up(capacity, unit_)) {}

void GrowableBuffer::resize(std::size_t bytes) {
    if (bytes > capacity()) {
        throw std::length_error(fmt::format(
            "a buffer with room for {} bytes cannot grow to {}: reserve more when you create it",
            capacity(), bytes));
    }
    const CUdeviceptr wanted_end = base() + round_up(bytes, unit_);
    while (!pieces_.empty() && pieces_.back().address() >= wanted_end) {
        pieces_.back().close();
        pieces_.pop_back();
    }
    const CUdeviceptr end = base() + size();
    if (end < wanted_end) {
        const std::size_t missing = wanted_end - end;
        PhysicalMemory memory = PhysicalMemory::create(device_memory(device_), missing);
        Mapping piece(end, missing, memory);
        memory.close();  // the mapping keeps the memory
        give_access(end, missing, device_);
        pieces_.push_back(std::move(piece));
    }
}

}  // namespace symm
