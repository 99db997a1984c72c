#include "labs/06_allreduce/algorithms/mailbox/mailbox_launch.hpp"
#include "labs/06_allreduce/algorithms/push/push.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const MailboxParams& call) {
    return Push<T, kMost>{call};
};

/// Whole cache lines for each sender.
MailboxLayout layout(int ranks) {
    const auto packs = static_cast<unsigned>(push_limit(ranks) / sizeof(simt::Pack16));
    return {(packs_per_part(packs, ranks) + 7) / 8 * 8, 2};
}

}  // namespace

extern const AlgorithmKernels kPushKernels =
    MailboxKernels<Algorithm::kPush, layout, Types::kFloating, kKernel>::kEntry;

}  // namespace symm
