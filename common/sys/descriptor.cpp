#include "common/sys/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "common/sys/system_error.hpp"

namespace symm {

void UniqueFd::give_back(int fd) {
    ::close(fd);  // on Linux the number is free even after EINTR: no retry
}

UniqueFd UniqueFd::duplicate() const {
    const int copy = ::fcntl(value_, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        throw_errno("fcntl({}, F_DUPFD_CLOEXEC)", value_);
    }
    return UniqueFd(copy);
}

}  // namespace symm
