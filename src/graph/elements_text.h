// Text of numbers and of the elements of constants.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/dtype.h"

namespace meganeura {

// The number that the whole text spells, in C++ notation ("nan" and "inf" are legal), or nothing.
std::optional<double> number_from_text(std::string_view text);

// One element: a decimal that reads back as the same bits; a NaN with other bits than encode_values
// gives is "nan:0x7fc00001".
std::string element_text(DType dtype, std::span<const std::byte> bytes);

// Appends the element that the text spells; false when it is no value of the dtype.
bool append_element(DType dtype, std::string_view text, std::vector<std::byte>& out);

}  // namespace meganeura
