// AllReduce with RMSNorm: a row has the same bits in every batch.

#include <random>
#include <vector>

#include "../all_reduce_rms_norm.hpp"
#include "checks.hpp"
#include "your_own_test.hpp"

namespace symm::collectives {
namespace {

using symm::Communicator;
using symm::Rank;
using symm::Stream;

/// Requires that each row has the bits of the first call, whatever a call's rows and way are.
class EqualRows {
public:
    EqualRows(Rank& rank, unsigned hidden) : rank_(rank), hidden_(hidden) {}

    void check_calls(unsigned max_blocks) {
        Communicator communicator(rank_, {.max_blocks = max_blocks});
        const AllReduceRmsNorm rms_norm(communicator);
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(2 * kMostRows * row_bytes());
        const symm::DeviceMemory memory((3 * kMostRows + 1) * row_bytes());
        for (const unsigned rows : {kKinds, 1U, kMostRows}) {
            const std::size_t bytes = rows * row_bytes();
            for (const RmsNormWay way :
                 {RmsNormWay::kPacks, RmsNormWay::kOneShot, RmsNormWay::kTwoShots}) {
                const CUdeviceptr x = way == RmsNormWay::kPacks ? memory.address() : window;
                const CUdeviceptr out = memory.address() + 2 * bytes;
                put(x, rows, static_cast<unsigned>(rank_.rank()));
                put(x + bytes, rows, 100);
                put(out + bytes, 1, 101);
                rank_.bootstrap().barrier("inputs are written");
                const RmsNormRows call{
                    x, x + bytes, out, out + bytes, rows, hidden_, symm::DataType::kFloat, 1e-6F};
                rms_norm(call, stream.get(), way);
                communicator.synchronize(stream, "the RMSNorm");
                check(call, way);
                rank_.bootstrap().barrier("results are checked");
            }
        }
    }

private:
    static constexpr unsigned kKinds = 21;  // a sum in another order shows in one row of four
    static constexpr unsigned kMostRows = 45;

    std::size_t row_bytes() const { return hidden_ * sizeof(float); }

    void check(const RmsNormRows& call, RmsNormWay way) {
        std::vector<float> seen(2 * hidden_);
        for (unsigned row = 0; row < call.rows; ++row) {
            const std::size_t at = row * row_bytes();
            symm::copy_to_host(seen.data(), call.residual + at, row_bytes());
            symm::copy_to_host(&seen[hidden_], call.out + at, row_bytes());
            std::vector<float>& first = of_kind_[row % kKinds];
            first = first.empty() ? seen : first;
            require(seen == first, "row {} of {}, by {}: not the bits of the first call", row,
                    call.rows, symm::name_of(way));
        }
    }

    /// Row r is one of kKinds, with numbers from -2 to 2, of as many bits as they have.
    void put(CUdeviceptr to, unsigned rows, unsigned seed) const {
        std::vector<float> values(std::size_t{rows} * hidden_);
        for (unsigned row = 0; row < rows; ++row) {
            std::minstd_rand random(seed * kKinds + row % kKinds + 1);
            for (unsigned i = 0; i < hidden_; ++i) {
                values[row * hidden_ + i] = static_cast<float>(random()) * 0x1p-29F - 2;
            }
        }
        symm::copy_to_device(to, values.data(), values.size() * sizeof(float));
    }

    Rank& rank_;
    unsigned hidden_;
    std::vector<float> of_kind_[kKinds];  ///< The residual and the output.
};

}  // namespace

void check_batch_invariance(Rank& rank, unsigned hidden) {
    EqualRows equal(rank, hidden);
    equal.check_calls(64);
    equal.check_calls(1);
}

}  // namespace symm::collectives
