#include "labs/06_allreduce/algorithms/mailbox/mailbox_launch.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const MailboxParams& call) {
    return OneShot<T, kMost>{call};
};

}  // namespace

extern const AlgorithmKernels kOneShotKernels =
    MailboxKernels<Algorithm::kOneShot, packet_layout, Types::kAll, kKernel>::kEntry;

}  // namespace symm
