#pragma once
/// \file
/// AllReduce, residual and RMSNorm in one call. all_reduce_rms_norm_kernel.hpp has the kernels.

#include <symm/symm.hpp>

namespace symm::collectives {

/// How a call is made: in one shot through the mailbox; in one or two shots through windows; kAuto
/// chooses by the size.
enum class RmsNormWay { kAuto, kPacks, kOneShot, kTwoShots };
constexpr auto names_of(RmsNormWay) {
    return symm::names("RmsNormWay", "auto", "packs", "oneshot", "twoshots");
}

/// A call's buffers: `rows` rows of `hidden` elements each, and the weights, one row.
struct RmsNormRows {
    CUdeviceptr x;
    CUdeviceptr residual;
    CUdeviceptr out;
    CUdeviceptr weight;
    unsigned rows;
    unsigned hidden;
    symm::DataType type;
    float epsilon;
};

/// One rank's calls. Construction and calls are collective. The communicator outlives it.
class AllReduceRmsNorm {
public:
    explicit AllReduceRmsNorm(symm::Communicator& communicator);

    /// Queues `residual += sum over ranks of x; out = residual / rms(residual) * weight`, row by
    /// row, in float, half or bfloat16. All ranks pass the same residual and weights, and get the
    /// same bits. Buffers begin at multiples of 16 bytes and do not overlap; there are 1 to 8,192
    /// rows of 512 to 16,384 elements, a multiple of 16 bytes. x in a window is faster for many
    /// rows, and with more than two ranks the residual, too: for kAuto they lie there on all ranks
    /// or on none.
    ///
    /// Throws std::invalid_argument for a call that is not possible. With SYMM_CHECK=1 the ranks'
    /// rows, types, epsilons and ways are compared.
    void operator()(const RmsNormRows& rows, CUstream stream,
                    RmsNormWay way = RmsNormWay::kAuto) const;

private:
    void launch_packs(const RmsNormRows& rows, CUstream stream) const;

    symm::OwnCollective own_;
    CUdeviceptr squares_;  ///< Of the parts of long rows.
};

}  // namespace symm::collectives
