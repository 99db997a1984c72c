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

/// A call's buffers: `rows` rows of `hidden` elements each, and one row of weights. Those that have
/// a default may be left out.
struct RmsNormRows {
    CUdeviceptr x;
    CUdeviceptr residual;  ///< 0: none.
    CUdeviceptr out;
    CUdeviceptr weight;
    unsigned rows;
    unsigned hidden;
    symm::DataType type;  ///< Of x, residual and out.
    float epsilon;
    bool float_weights = false;  ///< Weight and bias are floats, not of `type`.
    float weight_offset = 0;     ///< Added to each weight: 1 for models whose weights are (1 + w).
    CUdeviceptr bias = 0;        ///< One row.
    CUdeviceptr out_scale = 0;   ///< One float on the GPU; `out` is then float8 (e4m3).
};

/// One rank's calls. Construction and calls are collective. The communicator outlives it.
class AllReduceRmsNorm {
public:
    explicit AllReduceRmsNorm(symm::Communicator& communicator);

    /// Queues, row by row, in float, half or bfloat16:
    ///
    ///     residual += sum over ranks of x
    ///     out = (residual / rms(residual) * (weight + weight_offset) + bias) / out_scale
    ///
    /// Without a residual, x's sum takes its place, and is not stored. `out` is rounded once, from
    /// float; in float8, values beyond 448 become 448. All ranks pass the same residual, weights,
    /// bias and scale, and get the same bits. **A row's bits do not depend on the other rows**, on
    /// their number, on the way, or on where buffers lie: only on that row of all ranks' x.
    ///
    /// Buffers begin at multiples of 16 bytes (out_scale: of 4) and do not overlap; there are 1 to
    /// 8,192 rows of 512 to 16,384 elements, a multiple of 16 bytes. x in a window is faster for
    /// many rows, and with more than two ranks the residual, too: for kAuto they lie there on all
    /// ranks or on none. Two shots need a residual.
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
