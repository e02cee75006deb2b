#include "program/program.h"

namespace meganeura {

const ProgramTensor* Program::find(std::string_view name) const {
  for (const ProgramTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace meganeura
