#include "common/sys/pages.hpp"

#include <unistd.h>

#include <algorithm>

#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"

namespace symm {

std::size_t page_bytes() {
    static const std::size_t bytes = std::max(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)),
                                              bytes_in(env::choice("SYMM_EMU_PAGE")).value());
    return bytes;
}

std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

}  // namespace symm
