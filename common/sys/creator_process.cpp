#include "common/sys/creator_process.hpp"

#include <pthread.h>
#include <unistd.h>

namespace symm {
namespace {

unsigned forks = 0;  // written by a child before it has a second thread

}  // namespace

CreatorProcess::CreatorProcess() : id_(::getpid()) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
    static_cast<void>(registered);
    forks_ = forks;
}

unsigned CreatorProcess::forks_so_far() {
    return forks;
}

}  // namespace symm
