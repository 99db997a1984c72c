#include "labs/06_allreduce/algorithms/mailbox/mailbox_launch.hpp"
#include "labs/06_allreduce/algorithms/sentinel/one_pack.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const MailboxParams& call) {
    return Sentinel<T, kMost>{call};
};

/// Whether SentinelOfOnePack makes the call.
bool has_one_pack(const Call& call, LaunchShape shape) {
    constexpr std::size_t kPack = sizeof(simt::Pack16);
    return call.op == ReduceOp::kSum && (call.in | call.out | call.bytes()) % kPack == 0 &&
           call.bytes() / kPack <= std::size_t{shape.blocks} * shape.threads;
}
constexpr auto kOfOnePack = []<class T, int kMost>(const MailboxParams& call) {
    return SentinelOfOnePack<T, kMost>{call};
};

MailboxLayout layout(int ranks) {
    return {static_cast<unsigned>(sentinel_limit(ranks) / sizeof(simt::Pack16))};
}

}  // namespace

extern const AlgorithmKernels kSentinelKernels =
    MailboxKernels<Algorithm::kSentinel, layout, Types::kFloating, kKernel, has_one_pack,
                   kOfOnePack>::kEntry;

}  // namespace symm
