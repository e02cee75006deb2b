// The safetensors file format: named tensors behind a JSON header.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/dtype.h"
#include "meganeura/export.h"
#include "meganeura/shape.h"

namespace meganeura {

// A named tensor whose bytes (dense, row-major, little-endian) belong to somebody else. The bytes
// may start anywhere in a file, so they can be misaligned for their dtype: copy them.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

// A file that has been checked completely: every range lies in the file, fits its dtype and shape,
// and together they cover the data without overlap or hole.
class MEGANEURA_API SafetensorsFile {
 public:
  // Maps the file for reading; the tensors borrow from the returned object. Error(kFile) when any
  // rule of the format is broken, Error(kUnsupported) for a dtype that this library does not have.
  static SafetensorsFile open(const std::filesystem::path& path);
  // The same for bytes in memory; `name` is what errors call them.
  static SafetensorsFile parse(std::vector<std::byte> bytes, std::string_view name);

  // In order of their names.
  const std::vector<NamedTensor>& tensors() const;
  // The tensor of that name, or nullptr.
  const NamedTensor* find(std::string_view name) const;
  // The tensor of that name; Error(kFile) naming it and the file when there is none.
  const NamedTensor& at(std::string_view name) const;
  const Metadata& metadata() const;

 private:
  struct Contents;
  explicit SafetensorsFile(std::shared_ptr<const Contents> contents);
  std::shared_ptr<const Contents> contents_;
};

// The bytes of a file with these tensors: a function of the set of tensors and metadata, whatever
// their order (wider dtypes first, then by name, so that every tensor is aligned).
// Error(kInvalidArgument) for what the reader would refuse.
MEGANEURA_API std::vector<std::byte> serialize_safetensors(std::span<const NamedTensor> tensors,
                                                           const Metadata& metadata = {});

// Writes such a file in place of `path`; when anything fails, the old file stays as it was.
MEGANEURA_API void save_safetensors(const std::filesystem::path& path,
                                    std::span<const NamedTensor> tensors,
                                    const Metadata& metadata = {});

}  // namespace meganeura
