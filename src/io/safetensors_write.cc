#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/platform_file.h"
#include "io/safetensors_format.h"
#include "meganeura/safetensors.h"

namespace meganeura {

namespace {

using namespace safetensors;

// The tensors in the order of their data.
std::vector<const NamedTensor*> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const uint32_t a_bits = info(a->dtype).bits;
    const uint32_t b_bits = info(b->dtype).bits;
    return a_bits != b_bits ? a_bits > b_bits : a->name < b->name;
  });
  return order;
}

void check_tensor(const NamedTensor& tensor) {
  if (tensor.name == kMetadataKey)
    fail(ErrorKind::kInvalidArgument, "A tensor cannot be saved under the name ", kMetadataKey,
         ", which the safetensors format reserves.");
  if (info(tensor.dtype).safetensors.empty())
    fail(ErrorKind::kInvalidArgument, "Tensor \"", tensor.name, "\" has the dtype ", tensor.dtype,
         ", which the safetensors format does not know.");
  const uint64_t needed = storage_bytes(tensor.shape, tensor.dtype);
  if (tensor.bytes.size() != needed)
    fail(ErrorKind::kInvalidArgument, "Tensor \"", tensor.name, "\" of ", tensor.dtype, " ",
         tensor.shape, " needs ", needed, " bytes, but ", tensor.bytes.size(), " were given.");
}

// Length, header and padding: everything in front of the data.
std::string preamble(std::span<const NamedTensor* const> order, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  uint64_t offset = 0;
  for (const NamedTensor* tensor : order) {
    check_tensor(*tensor);
    const auto extents = tensor->shape.extents();
    const uint64_t end = offset + tensor->bytes.size();
    nlohmann::ordered_json entry;
    entry["dtype"] = std::string(info(tensor->dtype).safetensors);
    entry["shape"] = std::vector<int64_t>(extents.begin(), extents.end());
    entry["data_offsets"] = {offset, end};
    // Looking a key up walks them all, so append; check_unique() has found duplicates.
    header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(tensor->name,
                                                                     std::move(entry));
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::kInvalidArgument,
         "The names and metadata of a safetensors file must be UTF-8 (", error.what(), ").");
  }
  const size_t padding = (kAlignment - text.size() % kAlignment) % kAlignment;
  text.append(padding, ' ');
  if (text.size() > kMaxHeaderBytes)
    fail(ErrorKind::kInvalidArgument, "The names and metadata of ", order.size(),
         " tensors make a header of ", text.size(), " bytes; the safetensors format allows ",
         kMaxHeaderBytes, ". Save less metadata, or several files.");
  std::string out(kLengthBytes, '\0');
  const uint64_t length = text.size();
  std::memcpy(out.data(), &length, kLengthBytes);
  return out + text;
}

void check_unique(std::span<const NamedTensor> tensors) {
  std::vector<std::string_view> names;
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    fail(ErrorKind::kInvalidArgument, "Two tensors are to be saved under the name \"", *twice,
         "\". Give each its own name.");
}

// The pieces of the file in order; the first borrows from `front`.
std::vector<std::span<const std::byte>> file_parts(std::span<const NamedTensor> tensors,
                                                   const Metadata& metadata, std::string& front) {
  check_unique(tensors);
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  front = preamble(order, metadata);
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(front))};
  for (const NamedTensor* tensor : order) parts.push_back(tensor->bytes);
  return parts;
}

}  // namespace

std::vector<std::byte> serialize_safetensors(std::span<const NamedTensor> tensors,
                                             const Metadata& metadata) {
  std::string front;
  std::vector<std::byte> bytes;
  for (std::span<const std::byte> part : file_parts(tensors, metadata, front))
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

void save_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                      const Metadata& metadata) {
  std::string front;
  write_file_atomically(path, file_parts(tensors, metadata, front));
}

}  // namespace meganeura
