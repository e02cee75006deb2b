// The file: "MGPR", u32 version, u32 number of sections, then a row {u32 id, u64 bytes, u64
// checksum} per section and a u64 checksum of all that; then the sections, back to back.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/platform_file.h"
#include "program/archive.h"
#include "program/program.h"

namespace meganeura {
namespace {

constexpr std::array<char, 4> kMagic = {'M', 'G', 'P', 'R'};
constexpr uint32_t kVersion = 1;
constexpr size_t kPreludeBytes = 12;
constexpr size_t kRowBytes = 20;
constexpr size_t kChecksumBytes = 8;

// Field lists; A is archive::Writer or archive::Reader.
template <class A>
void capabilities_fields(A& a, auto& c) {
  a.enumerator(c.device_class, DeviceClass::kApple);
  a.enumerator(c.binding, BindingMode::kDescriptor);
  a.number(c.compute_units);
  a.number(c.subgroup_size);
  a.boolean(c.subgroup_arithmetic);
  a.boolean(c.subgroup_shuffle);
  a.boolean(c.subgroup_ballot);
  a.boolean(c.subgroup_size_control);
  a.number(c.max_workgroup_invocations);
  for (auto& size : c.max_workgroup_size) a.number(size);
  for (auto& count : c.max_workgroup_count) a.number(count);
  a.number(c.shared_bytes);
  a.number(c.push_constant_bytes);
  a.number(c.max_buffer_range);
  a.number(c.max_allocation_bytes);
  a.boolean(c.fused_fma);
  a.boolean(c.exact_division);
  a.boolean(c.exact_sqrt);
  a.boolean(c.signed_zero_inf_nan_preserve);
  a.boolean(c.denorm_preserve);
  a.boolean(c.rounding_rte);
}

template <class A>
void region_fields(A& a, auto& region) {
  a.enumerator(region.space, Region::Space::kScratch);
  a.number(region.tensor);
  a.number(region.offset);
  a.number(region.bytes);
}

template <class A>
void tensor_fields(A& a, auto& tensor) {
  a.text(tensor.name);
  a.enumerator(tensor.kind, TensorKind::kConstant);
  a.enumerator(tensor.dtype, DType::kBool);
  a.shape(tensor.shape);
  region_fields(a, tensor.region);
  a.text(tensor.initializer);
  a.boolean(tensor.trainable);
  a.number(tensor.limit);
}

template <class A>
void module_fields(A& a, auto& module) {
  a.text(module.name);
  a.enumerator(module.code, CodeKind::kKernelText);
  a.words(module.words);
  a.enumerator(module.binding, BindingMode::kDescriptor);
  a.number(module.slots);
  a.number(module.params);
  for (auto& size : module.local_size) a.number(size);
  a.number(module.subgroup_size);
}

template <class A>
void dispatch_fields(A& a, auto& dispatch) {
  a.number(dispatch.module);
  for (auto& count : dispatch.grid) a.number(count);
  a.list(dispatch.bindings, [](A& inner, auto& binding) {
    region_fields(inner, binding.region);
    inner.boolean(binding.read);
    inner.boolean(binding.write);
  });
  a.words(dispatch.params);
  a.text(dispatch.label);
}

template <class A>
void segment_fields(A& a, auto& segment) {
  a.text(segment.name);
  a.list(segment.levels, [](A& inner, auto& level) {
    inner.list(level.dispatches,
               [](A& innermost, auto& dispatch) { dispatch_fields(innermost, dispatch); });
  });
}

template <class A>
void header_section(A& a, auto& program) {
  a.text(program.target);
  capabilities_fields(a, program.capabilities);
  a.number(program.input_bytes);
  a.number(program.output_bytes);
  a.number(program.scratch_bytes);
  a.number(program.source_hash);
}

template <class A>
void tensors_section(A& a, auto& program) {
  a.list(program.tensors, [](A& inner, auto& tensor) { tensor_fields(inner, tensor); });
}

template <class A>
void modules_section(A& a, auto& program) {
  a.list(program.modules, [](A& inner, auto& module) { module_fields(inner, module); });
}

template <class A>
void segments_section(A& a, auto& program) {
  a.list(program.segments, [](A& inner, auto& segment) { segment_fields(inner, segment); });
}

// Ids are positions in this table plus one; the constants follow as the last section, raw.
struct Section {
  const char* name;
  void (*write)(archive::Writer&, const Program&);
  void (*read)(archive::Reader&, Program&);
};

constexpr Section kSections[] = {
    {"header", header_section<archive::Writer, const Program>,
     header_section<archive::Reader, Program>},
    {"tensors", tensors_section<archive::Writer, const Program>,
     tensors_section<archive::Reader, Program>},
    {"modules", modules_section<archive::Writer, const Program>,
     modules_section<archive::Reader, Program>},
    {"segments", segments_section<archive::Writer, const Program>,
     segments_section<archive::Reader, Program>},
};
constexpr uint32_t kTableSections = std::size(kSections);
constexpr uint32_t kAllSections = kTableSections + 1;
constexpr size_t kHeadBytes = kPreludeBytes + kRowBytes * kAllSections;

struct Row {
  uint32_t id = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

template <class A>
void row_fields(A& a, auto&& row) {
  a.number(row.id);
  a.number(row.bytes);
  a.number(row.checksum);
}

std::vector<Row> read_table(std::span<const std::byte> bytes) {
  if (bytes.size() < kPreludeBytes ||
      !std::equal(kMagic.begin(), kMagic.end(), bytes.begin(), [](char expected, std::byte found) {
        return static_cast<std::byte>(expected) == found;
      })) {
    fail(ErrorKind::kFile, "This is no program: it does not begin with \"MGPR\".");
  }
  archive::Reader prelude(bytes.subspan(kMagic.size(), 8), "prelude");
  uint32_t version = 0;
  uint32_t count = 0;
  prelude.number(version);
  prelude.number(count);
  if (version != kVersion) {
    fail(ErrorKind::kUnsupported, "The program has format version ", version,
         " and this build reads version ", kVersion, ". Compile it again with this build.");
  }
  if (count != kAllSections || bytes.size() < kHeadBytes + kChecksumBytes) {
    fail(ErrorKind::kFile, "The program is truncated or damaged: it claims ", count,
         " sections and has ", bytes.size(), " bytes.");
  }
  archive::Reader reader(bytes.subspan(kPreludeBytes, kRowBytes * count + kChecksumBytes),
                         "section table");
  std::vector<Row> rows(count);
  for (Row& row : rows) row_fields(reader, row);
  uint64_t expected = 0;
  reader.number(expected);
  if (archive::checksum(bytes.first(kHeadBytes)) != expected) {
    fail(ErrorKind::kFile, "The program is damaged: the checksum of its section table is wrong.");
  }
  return rows;
}

// The bytes of every section, checked against the table.
std::vector<std::span<const std::byte>> read_sections(std::span<const std::byte> bytes) {
  const std::vector<Row> rows = read_table(bytes);
  std::span<const std::byte> rest = bytes.subspan(kHeadBytes + kChecksumBytes);
  std::vector<std::span<const std::byte>> sections;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.id != i + 1 || row.bytes > rest.size()) {
      fail(ErrorKind::kFile, "The program is damaged or truncated: section ", i + 1, " of ",
           row.bytes, " bytes does not fit into the ", rest.size(), " bytes left.");
    }
    sections.push_back(rest.first(row.bytes));
    rest = rest.subspan(row.bytes);
    if (archive::checksum(sections.back()) != row.checksum) {
      fail(ErrorKind::kFile, "The program is damaged: the checksum of section ", row.id,
           " is wrong.");
    }
  }
  if (!rest.empty()) {
    fail(ErrorKind::kFile, "The program is damaged: ", rest.size(), " bytes follow its end.");
  }
  return sections;
}

Program read_program(std::span<const std::byte> bytes) {
  const std::vector<std::span<const std::byte>> sections = read_sections(bytes);
  Program program;
  for (uint32_t i = 0; i < kTableSections; ++i) {
    archive::Reader reader(sections[i], kSections[i].name);
    kSections[i].read(reader, program);
    reader.finish();
  }
  program.constants.assign(sections.back().begin(), sections.back().end());
  verify_program(program);
  check_hazards(program);
  return program;
}

}  // namespace

std::vector<std::byte> serialize(const Program& program) {
  verify_program(program);
  check_hazards(program);
  std::vector<std::vector<std::byte>> sections;
  for (const Section& section : kSections) {
    archive::Writer writer;
    section.write(writer, program);
    sections.push_back(writer.take());
  }
  sections.push_back(program.constants);

  archive::Writer head;
  for (const char letter : kMagic) head.number(letter);
  head.number(kVersion);
  head.number(kAllSections);
  for (uint32_t i = 0; i < sections.size(); ++i) {
    row_fields(head, Row{i + 1, sections[i].size(), archive::checksum(sections[i])});
  }
  std::vector<std::byte> bytes = head.take();
  archive::Writer tail;
  tail.number(archive::checksum(bytes));
  sections.insert(sections.begin(), tail.take());
  for (const std::vector<std::byte>& section : sections) {
    bytes.insert(bytes.end(), section.begin(), section.end());
  }
  return bytes;
}

Program deserialize(std::span<const std::byte> bytes) {
  try {
    return read_program(bytes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kFile || error.kind() == ErrorKind::kUnsupported) throw;
    fail(ErrorKind::kFile, "The program is not usable. ", error.what());
  }
}

void save_program(const Program& program, const std::filesystem::path& path) {
  write_file_atomically(path, serialize(program));
}

Program load_program(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  try {
    return deserialize(bytes);
  } catch (const Error& error) {
    fail(error.kind(), "The file \"", path.string(), "\" was refused. ", error.what());
  }
}

}  // namespace meganeura
