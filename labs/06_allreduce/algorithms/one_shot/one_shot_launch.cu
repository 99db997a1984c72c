#include "labs/06_allreduce/algorithms/one_shot/one_shot_launch.hpp"

#include "labs/06_allreduce/algorithms/mailbox/mailbox_launch.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const MailboxCall& call) {
    return OneShot<T, kMost>{call};
};

}  // namespace

void launch_one_shot(CUstream stream, LaunchShape shape, const MailboxCall& call) {
    launch_for(stream, shape, call.type, call.ranks, call, kKernel);
}

extern const AlgorithmKernels kOneShotKernels =
    MailboxKernels<Collective::kAllReduce, Algorithm::kOneShot, packet_layout, Types::kAll,
                   kKernel>::kEntry;

}  // namespace symm
