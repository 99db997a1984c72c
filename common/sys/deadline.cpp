#include "common/sys/deadline.hpp"

#include "common/sys/environment.hpp"

namespace symm {

std::chrono::nanoseconds Deadline::standard_limit() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(env::seconds("SYMM_TIMEOUT")));
}

Deadline Deadline::standard() {
    return after(standard_limit());
}

}  // namespace symm
