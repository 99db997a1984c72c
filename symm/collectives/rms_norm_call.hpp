#pragma once
/// \file
/// What a call of AllReduceRmsNorm asks for, and whether it is possible.

#include <cstddef>
#include <string>

#include "all_reduce_rms_norm.hpp"

namespace symm::collectives {

inline constexpr unsigned kMostHidden = 16384;

/// Whether a call needs no more than `residual += x; out = residual / rms * weight`, in one type.
bool is_plain(const RmsNormRows& rows);

/// Of x, and of the residual.
std::size_t bytes_of_row(const RmsNormRows& rows);
std::size_t bytes_of(const RmsNormRows& rows);
std::size_t bytes_of_out(const RmsNormRows& rows);
std::size_t elements_of(const RmsNormRows& rows);

/// Throws std::invalid_argument for a call that is not possible in any way.
void require_possible(const RmsNormRows& rows);

/// What all ranks have to ask for alike.
std::string text_of(const RmsNormRows& rows, RmsNormWay asked);

}  // namespace symm::collectives
