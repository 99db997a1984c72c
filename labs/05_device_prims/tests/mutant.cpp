// The primitives between two ranks: sound as they are, and with one ordering taken out where this
// is compiled as a mutant, which ThreadSanitizer must report.

#include "labs/05_device_prims/tests/mutant.hpp"

#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

void run(Rank& rank) {
    const SymmetricRange range(rank, sizeof(LatencyTestMemory));
    KernelTimeout timeout;
    const Stream stream;
    launch_zero(stream.get(), range.at<LatencyTestMemory>(rank.rank()));
    stream.synchronize();
    rank.bootstrap().barrier("zeroed");
    launch_games(stream.get(), range.at<LatencyTestMemory>(0), range.stride(), rank.rank(),
                 timeout.timeout());
    timeout.synchronize(stream, "the games");
    rank.bootstrap().barrier("played");
}

}  // namespace

int main() {
    return run_ranks({2, RankMode::kThread, {}}, run);
}
