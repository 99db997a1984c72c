#include "labs/06_allreduce/algorithms/mailbox/mailbox_launch.hpp"
#include "labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp"

namespace symm {
namespace {

constexpr auto kScatter = []<class T, int kMost>(const MailboxParams& call) {
    return ReduceScatterPackets<T, kMost>{call};
};
constexpr auto kGather = []<class T, int kMost>(const MailboxParams& call) {
    return AllGatherPackets<T, kMost>{call};
};
constexpr auto kBroadcast = []<class T, int kMost>(const MailboxParams& call) {
    return BroadcastPackets<T, kMost>{call};
};
constexpr auto kReduce = []<class T, int kMost>(const MailboxParams& call) {
    return ReducePackets<T, kMost>{call};
};

}  // namespace

extern const AlgorithmKernels kReduceScatterPacketsKernels =
    MailboxKernels<Algorithm::kOneShot, packet_layout, Types::kAll, kScatter>::kEntry;
extern const AlgorithmKernels kAllGatherPacketsKernels =
    MailboxKernels<Algorithm::kOneShot, packet_layout, Types::kIntegers, kGather>::kEntry;
extern const AlgorithmKernels kBroadcastPacketsKernels =
    MailboxKernels<Algorithm::kOneShot, packet_layout, Types::kIntegers, kBroadcast>::kEntry;
extern const AlgorithmKernels kReducePacketsKernels =
    MailboxKernels<Algorithm::kOneShot, packet_layout, Types::kAll, kReduce>::kEntry;

}  // namespace symm
