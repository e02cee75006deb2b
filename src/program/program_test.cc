#include "program/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/format.h"
#include "base/platform_file.h"
#include "meganeura/error.h"
#include "program/archive.h"

namespace meganeura {
namespace {

Module module_of(std::string name, uint32_t slots, uint32_t params) {
  Module module;
  module.name = std::move(name);
  module.words = {0x07230203, 0x00010500, 0, 1, 0, 42};
  module.slots = slots;
  module.params = params;
  module.local_size = {64, 1, 1};
  return module;
}

// y = w * x in one level, loss = sum(y), w -= y in the next, with constants and scratch.
Program sample() {
  Program p;
  p.target = "vulkan1.2";
  p.capabilities.compute_units = 2;
  p.capabilities.denorm_preserve = true;
  p.input_bytes = 1024;
  p.output_bytes = 256;
  p.scratch_bytes = 2048;
  p.constants.assign(256, std::byte{7});
  p.source_hash = 0x0123456789abcdefull;
  using Space = Region::Space;
  p.tensors = {
      {"w", TensorKind::kParameter, f32, {8, 16}, {Space::kTensor, 0, 0, 512}, "normal 0 1", true},
      {"step", TensorKind::kState, u32, {}, {Space::kTensor, 1, 0, 4}, "zeros"},
      {"x", TensorKind::kInput, f32, {8, 16}, {Space::kInputs, 0, 0, 512}},
      {"label", TensorKind::kInput, u32, {8}, {Space::kInputs, 0, 512, 32}, "", false, 10},
      {"empty", TensorKind::kInput, f16, {0, 3}, {Space::kInputs, 0, 768, 0}},
      {"loss", TensorKind::kOutput, f32, {}, {Space::kOutputs, 0, 0, 4}},
  };
  p.modules = {module_of("multiply", 3, 1), module_of("sum", 2, 0), module_of("update", 3, 2)};
  const Region w = {Space::kTensor, 0, 0, 512};
  const Region x = {Space::kInputs, 0, 0, 512};
  const Region y = {Space::kScratch, 0, 256, 512};
  const Region loss = {Space::kOutputs, 0, 0, 4};
  const Region one = {Space::kConstants, 0, 0, 4};
  Level first;
  first.dispatches = {{0, {2, 1, 1}, {{w, true}, {x, true}, {y, false, true}}, {128}, "w · x"}};
  Level second;
  second.dispatches = {
      {1, {1, 1, 1}, {{y, true}, {loss, false, true}}, {}, "sum → loss"},
      {2, {2, 1, 1}, {{y, true}, {one, true}, {w, true, true}}, {128, 9}, "update w"},
  };
  p.segments = {{"train", {first, second}}, {"empty", {}}};
  return p;
}

void expect_error(ErrorKind kind, const std::function<void()>& action, std::string_view part) {
  try {
    action();
    ADD_FAILURE() << "nothing thrown where \"" << part << "\" was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

TEST(Program, FindsTensorsByName) {
  const Program p = sample();
  ASSERT_NE(p.find("label"), nullptr);
  EXPECT_EQ(p.find("label")->limit, 10);
  EXPECT_EQ(p.find("nothing"), nullptr);
}

TEST(Program, TheSampleIsConsistent) {
  verify_program(sample());
  check_hazards(sample());
  verify_program(Program{.target = "interpreter"});
}

TEST(Program, EveryInconsistencyIsNamed) {
  const struct {
    const char* part;
    std::function<void(Program&)> damage;
  } kCases[] = {
      {"the target is \"metal\"", [](Program& p) { p.target = "metal"; }},
      {"subgroup size of 0", [](Program& p) { p.capabilities.subgroup_size = 0; }},
      {"unknown device class",
       [](Program& p) { p.capabilities.device_class = static_cast<DeviceClass>(9); }},
      {"tensor 2 has no name", [](Program& p) { p.tensors[2].name.clear(); }},
      {"the name \"w\" stands for two tensors", [](Program& p) { p.tensors[2].name = "w"; }},
      {"unknown kind 17", [](Program& p) { p.tensors[2].kind = static_cast<TensorKind>(17); }},
      {"unknown dtype 99", [](Program& p) { p.tensors[2].dtype = static_cast<DType>(99); }},
      {"does not lie in the inputs",
       [](Program& p) { p.tensors[2].region.space = Region::Space::kScratch; }},
      {"needs 544 bytes and has 512",
       [](Program& p) {
         p.tensors[2].shape = {8, 17};
       }},
      {"must start its own memory", [](Program& p) { p.tensors[0].region.tensor = 1; }},
      {"must start its own memory", [](Program& p) { p.tensors[0].region.offset = 4; }},
      {"has an initializer", [](Program& p) { p.tensors[2].initializer = "zeros"; }},
      {"is trainable", [](Program& p) { p.tensors[1].trainable = true; }},
      {"has the limit -1", [](Program& p) { p.tensors[3].limit = -1; }},
      {"has the limit 5", [](Program& p) { p.tensors[2].limit = 5; }},
      {"spans bytes 512 to 544 of the inputs, which has 520",
       [](Program& p) { p.input_bytes = 520; }},
      {"does not run", [](Program& p) { p.modules[1].code = CodeKind::kKernelText; }},
      {"does not begin like its kind", [](Program& p) { p.modules[1].words.clear(); }},
      {"does not begin like its kind", [](Program& p) { p.modules[1].words[0] = 1; }},
      {"another way", [](Program& p) { p.modules[1].binding = BindingMode::kDescriptor; }},
      {"bytes of push constants", [](Program& p) { p.modules[1].params = 100; }},
      {"bytes of push constants", [](Program& p) { p.modules[1].slots = ~0u; }},
      {"a workgroup of 0 along axis 2", [](Program& p) { p.modules[1].local_size[2] = 0; }},
      {"a workgroup of 256 invocations",
       [](Program& p) {
         p.modules[1].local_size = {64, 4, 1};
       }},
      {"two segments are called \"train\"", [](Program& p) { p.segments[1].name = "train"; }},
      {"runs module 3; there are 3",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].module = 3; }},
      {"has 0 workgroups along axis 1",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].grid[1] = 0; }},
      {"has 65536 workgroups along axis 0",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].grid[0] = 65536; }},
      {"binds 2 slots; module \"multiply\" has 3",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings.pop_back(); }},
      {"passes 2 params; module \"multiply\" takes 1",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].params.push_back(0); }},
      {"slot 2 of dispatch \"w · x\" in level 0 of segment \"train\" starts at byte 4",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings[2].region.offset = 4; }},
      {"spans bytes 256 to 768 of the scratch, which has 512",
       [](Program& p) { p.scratch_bytes = 512; }},
      {"the scratch, which has 2048",
       [](Program& p) {
         p.segments[0].levels[0].dispatches[0].bindings[2].region.offset = ~uint64_t{255};
       }},
      {"names tensor 6; there are 6",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings[0].region.tensor = 6; }},
      {"lies in tensor \"x\", which is not persistent",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings[0].region.tensor = 2; }},
      {"names tensor 1",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings[1].region.tensor = 1; }},
      {"unknown space 9",
       [](Program& p) {
         p.segments[0].levels[0].dispatches[0].bindings[0].region.space =
             static_cast<Region::Space>(9);
       }},
      {"is neither read nor written",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings[0].read = false; }},
      {"writes to the inputs",
       [](Program& p) { p.segments[0].levels[0].dispatches[0].bindings[1].write = true; }},
      {"writes to the constants",
       [](Program& p) { p.segments[0].levels[1].dispatches[1].bindings[1].write = true; }},
  };
  for (const auto& c : kCases) {
    Program p = sample();
    c.damage(p);
    expect_error(
        ErrorKind::kInternal, [&] { verify_program(p); }, c.part);
    EXPECT_THROW(serialize(p), Error) << c.part;
  }
}

TEST(Program, DescriptorsReachSoFar) {
  Program p = sample();
  p.capabilities.binding = BindingMode::kDescriptor;
  for (Module& module : p.modules) module.binding = BindingMode::kDescriptor;
  verify_program(p);
  p.capabilities.max_buffer_range = 511;
  expect_error(
      ErrorKind::kInternal, [&] { verify_program(p); }, "a descriptor reaches 511");
}

TEST(Program, HazardsInsideALevelAreFound) {
  Program p = sample();
  std::vector<Level>& levels = p.segments[0].levels;
  levels[0].dispatches.push_back(levels[1].dispatches[0]);
  expect_error(
      ErrorKind::kInternal, [&] { check_hazards(p); },
      "dispatch 0 (\"w · x\") and dispatch 1 (\"sum → loss\") touch the same bytes 256 "
      "to 768");
  expect_error(
      ErrorKind::kInternal, [&] { serialize(p); }, "hazard");
}

TEST(Program, MovingAnyDispatchOneLevelUpIsAHazard) {
  for (size_t i = 0; i < 2; ++i) {
    Program p = sample();
    std::vector<Level>& levels = p.segments[0].levels;
    levels[0].dispatches.push_back(levels[1].dispatches[i]);
    levels[1].dispatches.erase(levels[1].dispatches.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_THROW(check_hazards(p), Error) << i;
  }
}

TEST(Program, HazardsNeedOverlapOfOneMemoryAndAWriter) {
  const auto program_with = [](Binding a, Binding b) {
    Program p = sample();
    Level& level = p.segments[0].levels[0];
    level.dispatches = {{1, {1, 1, 1}, {a}, {}, "a"}, {1, {1, 1, 1}, {b}, {}, "b"}};
    return p;
  };
  using Space = Region::Space;
  const Region low = {Space::kScratch, 0, 0, 512};
  const Region high = {Space::kScratch, 0, 512, 512};
  const Region across = {Space::kScratch, 0, 256, 512};
  const Region tensor0 = {Space::kTensor, 0, 0, 512};
  const Region tensor1 = {Space::kTensor, 1, 0, 4};
  const Region nothing = {Space::kScratch, 0, 256, 0};
  const Region wide = {Space::kScratch, 0, 0, 2048};
  check_hazards(program_with({low, true}, {across, true}));
  check_hazards(program_with({low, false, true}, {high, false, true}));
  check_hazards(program_with({tensor0, false, true}, {tensor1, false, true}));
  check_hazards(program_with({low, false, true}, {nothing, false, true}));
  EXPECT_THROW(check_hazards(program_with({low, false, true}, {across, true})), Error);
  EXPECT_THROW(check_hazards(program_with({across, true}, {low, false, true})), Error);
  EXPECT_THROW(check_hazards(program_with({wide, true}, {across, false, true})), Error);
  EXPECT_THROW(check_hazards(program_with({across, false, true}, {wide, true})), Error);
  EXPECT_THROW(check_hazards(program_with({across, true, true}, {across, true, true})), Error);
}

TEST(Program, ADispatchMayUpdateInPlaceAndManyMayReadOneTensor) {
  Program p = sample();
  Level& level = p.segments[0].levels[0];
  const Region y = {Region::Space::kScratch, 0, 0, 512};
  level.dispatches = {{0, {1, 1, 1}, {{y, true}, {y, true}, {y, false, true}}, {1}, "in place"}};
  check_hazards(p);
  const Region x = {Region::Space::kInputs, 0, 0, 512};
  level.dispatches.assign(20000, {0, {1, 1, 1}, {{x, true}, {x, true}, {x, true}}, {1}, "reader"});
  check_hazards(p);
}

TEST(ProgramFile, RoundTripsAndIsStable) {
  const Program p = sample();
  const std::vector<std::byte> bytes = serialize(p);
  const Program q = deserialize(bytes);
  EXPECT_EQ(serialize(q), bytes);
  EXPECT_EQ(q.tensors[3].shape, (Shape{8}));
  EXPECT_EQ(q.tensors[3].limit, 10);
  EXPECT_EQ(q.tensors[0].initializer, "normal 0 1");
  EXPECT_TRUE(q.tensors[0].trainable);
  EXPECT_EQ(q.modules, p.modules);
  EXPECT_EQ(q.segments[0].levels[1].dispatches[1].bindings,
            p.segments[0].levels[1].dispatches[1].bindings);
  EXPECT_EQ(q.segments[0].levels[1].dispatches[0].label, "sum → loss");
  EXPECT_EQ(q.constants, p.constants);
  EXPECT_EQ(q.source_hash, p.source_hash);
  EXPECT_TRUE(q.capabilities.denorm_preserve);
  EXPECT_EQ(archive::checksum(bytes), 16212922761066637389u);  // the bytes are the format
}

TEST(ProgramFile, SavesAndLoads) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "program_test.mgpr";
  save_program(sample(), path);
  EXPECT_EQ(serialize(load_program(path)), serialize(sample()));
  write_file_atomically(path, std::as_bytes(std::span("not a program")));
  expect_error(
      ErrorKind::kFile, [&] { load_program(path); }, path.string());
  std::filesystem::remove(path);
  expect_error(
      ErrorKind::kFile, [&] { load_program(path); }, "No such file");
}

TEST(ProgramFile, EveryTruncationAndExtensionIsRefused) {
  const std::vector<std::byte> bytes = serialize(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(deserialize(std::span(bytes).first(size)), Error) << size;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  expect_error(
      ErrorKind::kFile, [&] { deserialize(longer); }, "1 bytes follow its end");
}

TEST(ProgramFile, AnotherVersionIsUnsupported) {
  std::vector<std::byte> bytes = serialize(sample());
  bytes[4] = std::byte{2};
  expect_error(
      ErrorKind::kUnsupported, [&] { deserialize(bytes); }, "format version 2");
}

TEST(ProgramFile, EveryFlippedBitIsRefused) {
  const std::vector<std::byte> bytes = serialize(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{static_cast<unsigned char>(1u << (i % 8))};
    EXPECT_THROW(deserialize(damaged), Error) << i;
  }
}

// Where the sections begin and end; the layout is stated in serialize.cc.
struct Layout {
  static constexpr size_t kSections = 5;
  static constexpr size_t kTable = 12;
  static constexpr size_t kRow = 20;
  static constexpr size_t kHead = kTable + kRow * kSections;
};

uint64_t read_u64(std::span<const std::byte> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

void write_u64(std::span<std::byte> bytes, size_t at, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

// Makes the checksums right again, so that damage reaches the validators behind them.
void fix_checksums(std::vector<std::byte>& bytes) {
  size_t begin = Layout::kHead + 8;
  for (size_t i = 0; i < Layout::kSections; ++i) {
    const size_t row = Layout::kTable + Layout::kRow * i;
    const uint64_t size = read_u64(bytes, row + 4);
    if (size > bytes.size() - begin) break;
    write_u64(bytes, row + 12, archive::checksum(std::span(bytes).subspan(begin, size)));
    begin += size;
  }
  write_u64(bytes, Layout::kHead, archive::checksum(std::span(bytes).first(Layout::kHead)));
}

TEST(ProgramFile, MutationsWithRightChecksumsAreRefusedOrLoadVerified) {
  const std::vector<std::byte> original = serialize(sample());
  const size_t body = Layout::kHead + 8;
  size_t loaded = 0;
  size_t refused = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes = original;
    const auto position = [&] { return body + random() % (bytes.size() - body); };
    switch (seed % 4) {
      case 0:
        bytes[position()] ^= static_cast<std::byte>(1u << (random() % 8));
        break;
      case 1:
        for (int i = 0; i < 8; ++i) bytes[position()] = static_cast<std::byte>(random());
        break;
      case 2:  // a length or number far too large
        write_u64(bytes, std::min(position(), bytes.size() - 8), ~uint64_t{0} >> (random() % 64));
        break;
      case 3:  // sections longer or shorter than they were
        write_u64(bytes, Layout::kTable + Layout::kRow * (random() % Layout::kSections) + 4,
                  random() % 2 == 0 ? random() % 4096 : ~uint64_t{0} >> (random() % 64));
        break;
    }
    fix_checksums(bytes);
    try {
      const Program program = deserialize(bytes);
      verify_program(program);
      check_hazards(program);
      EXPECT_EQ(serialize(program), bytes) << seed;
      ++loaded;
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kFile) << seed << ": " << error.what();
      ++refused;
    }
  }
  // Both happen: a flipped bit in a label is a legal program, one in a count is not.
  EXPECT_GT(loaded, 100u);
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace meganeura
