#include "labs/06_allreduce/algorithms/mailbox/mailbox_launch.hpp"
#include "labs/06_allreduce/halves/packets.hpp"

namespace symm {
namespace {

constexpr auto kScatter = []<class T, int kMost>(const MailboxCall& call) {
    return ReduceScatterPackets<T, kMost>{call};
};
constexpr auto kGather = []<class T, int kMost>(const MailboxCall& call) {
    return AllGatherPackets<T, kMost>{call};
};

}  // namespace

extern const AlgorithmKernels kReduceScatterPacketsKernels =
    MailboxKernels<Collective::kReduceScatter, Algorithm::kOneShot, packet_layout, Types::kAll,
                   kScatter>::kSharing;
extern const AlgorithmKernels kAllGatherPacketsKernels =
    MailboxKernels<Collective::kAllGather, Algorithm::kOneShot, packet_layout, Types::kIntegers,
                   kGather>::kSharing;

}  // namespace symm
