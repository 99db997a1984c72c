// The primitives between two ranks: sound as they are, and with one ordering taken out where this
// is compiled as a mutant, which ThreadSanitizer must report.

#include "labs/05_device_prims/tests/mutant.hpp"

#include "common/cuda/watchdog.hpp"
#include "labs/03_ipc/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

void run(Rank& rank) {
    const SymmetricRange range(rank, sizeof(PlayMemory));
    Watchdog watchdog;
    const Stream stream;
    launch_zero(stream.get(), range.at<PlayMemory>(rank.rank()));
    stream.synchronize();
    rank.rendezvous().barrier("zeroed");
    launch_games(stream.get(), range.at<PlayMemory>(0), range.stride(), rank.rank(),
                 watchdog.watch());
    watchdog.synchronize(stream, "the games");
    rank.rendezvous().barrier("played");
}

}  // namespace

int main() {
    return run_ranks({2, RankMode::kThread, {}}, run);
}
