// The two-shot AllReduce of two ranks, a few calls: sound as it is, and with one ordering taken out
// where it is compiled as a mutant, which ThreadSanitizer must report. Prints nothing of its own
// when all is well.

#include "labs/06_allreduce/tests/mutant.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

void run(Rank& rank) {
    constexpr unsigned kCalls = 5;
    const SymmetricRange range(rank, sizeof(MutantMemory));
    KernelTimeout timeout;
    const PinnedMemory wrong(sizeof(unsigned));
    const Stream stream;
    auto* mine = range.at<MutantMemory>(rank.rank());
    launch_reset(stream.get(), mine);
    stream.synchronize();
    rank.bootstrap().barrier("reset");
    for (unsigned call = 0; call < kCalls; ++call) {
        launch_prepare(stream.get(), mine, rank.rank());
        launch_reduce(stream.get(), range.at<MutantMemory>(0), range.stride(), rank.rank(),
                      timeout.timeout());
        launch_compare(stream.get(), mine, wrong.as<unsigned>());
        timeout.synchronize(stream, "the AllReduce");
    }
    rank.bootstrap().barrier("done");
    if (*wrong.as<unsigned>() != kCalls) {  // the last element of each call is no part of it
        throw std::runtime_error(
            fmt::format("rank {}: {} wrong values", rank.rank(), *wrong.as<unsigned>()));
    }
}

}  // namespace

int main() {
    return run_ranks({2, RankMode::kThread, {}}, run);
}
