#include "common/sys/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace symm {

void UniqueFd::give_back(int fd) {
    ::close(fd);  // on Linux the number is free even after EINTR: no retry
}

UniqueFd UniqueFd::duplicate() const {
    const int copy = ::fcntl(value_, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        throw std::system_error(errno, std::generic_category(),
                                "fcntl(" + std::to_string(value_) + ", F_DUPFD_CLOEXEC)");
    }
    return UniqueFd(copy);
}

}  // namespace symm
