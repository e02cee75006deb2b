#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/platform_file.h"
#include "io/safetensors_format.h"
#include "meganeura/safetensors.h"

namespace meganeura {

namespace {

using nlohmann::json;
using namespace safetensors;

// Names that the format defines and DType has no row for.
constexpr std::array<std::string_view, 11> kForeignDTypes = {
    "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3",
    "F6_E3M2", "F4",      "U16",     "U64",         "C64"};

// A header is an object of objects of lists; deeper nesting could only cost memory.
constexpr int kMaxDepth = 4;

// The start of a value's text, for messages.
std::string brief(const json& value) {
  constexpr size_t kMost = 80;
  std::string text = value.dump();
  if (text.size() > kMost) text.replace(kMost, std::string::npos, "...");
  return text;
}

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Parses one file; every message starts with its name.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  void read(std::vector<NamedTensor>& tensors, Metadata& metadata) {
    const json header = parse_header(header_text());
    for (const auto& [key, value] : header.items()) {
      if (key == kMetadataKey) {
        read_metadata(value, metadata);
      } else {
        tensors.push_back(read_tensor(key, value));
      }
    }
    check_coverage(tensors);
    for (size_t i = 0; i < tensors.size(); ++i)
      tensors[i].bytes = data_.subspan(ranges_[i].begin, ranges_[i].end - ranges_[i].begin);
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kFile, name_, " is not a valid safetensors file: ", parts...);
  }

  // Splits the file into header and data.
  std::string_view header_text() {
    if (bytes_.size() < kLengthBytes)
      refuse("it has ", bytes_.size(), " bytes, fewer than the ", kLengthBytes,
             " of the header's length.");
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), kLengthBytes);
    if (length > kMaxHeaderBytes)
      refuse("its header claims ", length, " bytes; the format allows ", kMaxHeaderBytes, ".");
    if (length > bytes_.size() - kLengthBytes)
      refuse("its header claims ", length, " bytes, but only ", bytes_.size() - kLengthBytes,
             " follow. It may be truncated.");
    data_ = bytes_.subspan(kLengthBytes + length);
    const char* text = reinterpret_cast<const char*>(bytes_.data() + kLengthBytes);
    return {text, static_cast<size_t>(length)};
  }

  json parse_header(std::string_view text) const {
    if (text.empty() || text.front() != '{') refuse("its header does not start with '{'.");
    // Keys of every object that is open, so that a second use of one is noticed.
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
      if (depth > kMaxDepth) refuse("its header is nested more than ", kMaxDepth, " levels deep.");
      if (event == json::parse_event_t::object_start) {
        keys.emplace_back();
      } else if (event == json::parse_event_t::object_end) {
        keys.pop_back();
      } else if (event == json::parse_event_t::key) {
        const std::string& key = parsed.get_ref<const std::string&>();
        if (!keys.back().insert(key).second)
          refuse("the key \"", key, "\" occurs twice in its header.");
      }
      return true;
    };
    try {
      return json::parse(text.begin(), text.end(), watch);
    } catch (const json::exception& error) {
      refuse("its header is not JSON (", error.what(), ").");
    }
  }

  void read_metadata(const json& value, Metadata& metadata) const {
    if (!value.is_object()) refuse("\"", kMetadataKey, "\" is not an object.");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string())
        refuse("the metadata \"", key, "\" is ", brief(text), "; only strings are allowed.");
      metadata.emplace(key, text.get<std::string>());
    }
  }

  const json& field(const std::string& tensor, const json& value, const char* name) const {
    const auto found = value.find(name);
    if (found == value.end()) refuse("tensor \"", tensor, "\" has no \"", name, "\".");
    return *found;
  }

  uint64_t number(const std::string& tensor, const json& value, std::string_view what) const {
    if (!value.is_number_unsigned())
      refuse(what, " of tensor \"", tensor, "\" is ", brief(value),
             "; a whole number that is not negative was expected.");
    return value.get<uint64_t>();
  }

  DType read_dtype(const std::string& tensor, const json& value) const {
    if (!value.is_string())
      refuse("the dtype of tensor \"", tensor, "\" is ", brief(value), "; a name was expected.");
    const std::string& name = value.get_ref<const std::string&>();
    if (const auto dtype = dtype_from_safetensors(name)) return *dtype;
    if (std::find(kForeignDTypes.begin(), kForeignDTypes.end(), name) != kForeignDTypes.end())
      fail(ErrorKind::kUnsupported, "Tensor \"", tensor, "\" of ", name_, " has the dtype ", name,
           ", which is not supported. Convert it to F32, F16 or BF16 first.");
    refuse("tensor \"", tensor, "\" has the unknown dtype \"", name, "\".");
  }

  Shape read_shape(const std::string& tensor, const json& value) const {
    if (!value.is_array())
      refuse("the shape of tensor \"", tensor, "\" is ", brief(value), "; a list was expected.");
    std::vector<int64_t> extents;
    for (const json& item : value) {
      const uint64_t extent = number(tensor, item, "an extent");
      if (extent > uint64_t{INT64_MAX})
        refuse("the extent ", extent, " of tensor \"", tensor, "\" is too large.");
      extents.push_back(static_cast<int64_t>(extent));
    }
    try {
      return Shape(std::move(extents));
    } catch (const Error& error) {
      refuse("the shape of tensor \"", tensor, "\" is impossible. ", error.what());
    }
  }

  Range read_range(const std::string& tensor, const json& value) const {
    if (!value.is_array() || value.size() != 2)
      refuse("the data_offsets of tensor \"", tensor, "\" are ", brief(value),
             "; a list of two numbers was expected.");
    const Range range{number(tensor, value[0], "a data offset"),
                      number(tensor, value[1], "a data offset")};
    if (range.begin > range.end)
      refuse("the data_offsets of tensor \"", tensor, "\" are reversed: ", brief(value), ".");
    if (range.end > data_.size())
      refuse("the data of tensor \"", tensor, "\" ends at ", range.end, ", but the file has only ",
             data_.size(), " bytes of data. It may be truncated.");
    return range;
  }

  NamedTensor read_tensor(const std::string& name, const json& value) {
    if (!value.is_object())
      refuse("the entry of tensor \"", name, "\" is ", brief(value), "; an object was expected.");
    NamedTensor tensor;
    tensor.name = name;
    tensor.dtype = read_dtype(name, field(name, value, "dtype"));
    tensor.shape = read_shape(name, field(name, value, "shape"));
    const Range range = read_range(name, field(name, value, "data_offsets"));
    if (range.end - range.begin != needed_bytes(tensor))
      refuse("tensor \"", name, "\" of ", tensor.dtype, " ", tensor.shape, " needs ",
             needed_bytes(tensor), " bytes, but its data_offsets span ", range.end - range.begin,
             ".");
    ranges_.push_back(range);
    return tensor;
  }

  uint64_t needed_bytes(const NamedTensor& tensor) const {
    try {
      return storage_bytes(tensor.shape, tensor.dtype);
    } catch (const Error& error) {
      refuse("tensor \"", tensor.name, "\" is impossibly large. ", error.what());
    }
  }

  // The ranges, put in order, must follow each other from the data's first byte to its last.
  void check_coverage(const std::vector<NamedTensor>& tensors) const {
    std::vector<size_t> order(tensors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(ranges_[a].begin, ranges_[a].end) <
             std::pair(ranges_[b].begin, ranges_[b].end);
    });
    uint64_t covered = 0;
    for (size_t i : order) {
      if (ranges_[i].begin < covered)
        refuse("the data of tensor \"", tensors[i].name, "\" starts at ", ranges_[i].begin,
               " and overlaps another tensor, which ends at ", covered, ".");
      if (ranges_[i].begin > covered)
        refuse("no tensor covers the bytes ", covered, " to ", ranges_[i].begin, " of its data.");
      covered = ranges_[i].end;
    }
    if (covered != data_.size())
      refuse(data_.size() - covered, " bytes follow the data of the last tensor.");
  }

  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::span<const std::byte> data_;
  std::vector<Range> ranges_;  // of every tensor, in the same order
};

}  // namespace

struct SafetensorsFile::Contents {
  std::string name;
  MappedFile file;
  std::vector<std::byte> owned;
  std::vector<NamedTensor> tensors;
  Metadata metadata;
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const Contents> contents)
    : contents_(std::move(contents)) {}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto contents = std::make_shared<Contents>();
  contents->name = path.string();
  contents->file = MappedFile(path);
  Reader(contents->file.bytes(), contents->name).read(contents->tensors, contents->metadata);
  return SafetensorsFile(std::move(contents));
}

SafetensorsFile SafetensorsFile::parse(std::vector<std::byte> bytes, std::string_view name) {
  auto contents = std::make_shared<Contents>();
  contents->name = name;
  contents->owned = std::move(bytes);
  Reader(contents->owned, contents->name).read(contents->tensors, contents->metadata);
  return SafetensorsFile(std::move(contents));
}

const std::vector<NamedTensor>& SafetensorsFile::tensors() const { return contents_->tensors; }

const NamedTensor* SafetensorsFile::find(std::string_view name) const {
  const auto& all = contents_->tensors;
  const auto found = std::lower_bound(all.begin(), all.end(), name,
                                      [](const NamedTensor& tensor, std::string_view key) {
                                        return std::string_view(tensor.name) < key;
                                      });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

const NamedTensor& SafetensorsFile::at(std::string_view name) const {
  if (const NamedTensor* tensor = find(name)) return *tensor;
  fail(ErrorKind::kFile, contents_->name, " has no tensor \"", name, "\" among its ",
       contents_->tensors.size(), " tensors. Was it written for another model?");
}

const Metadata& SafetensorsFile::metadata() const { return contents_->metadata; }

}  // namespace meganeura
