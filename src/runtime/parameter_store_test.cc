#include <cstring>

#include "device/interpreter/interpreter.h"
#include "graph/initialize.h"
#include "runtime/test_support.h"

namespace meganeura {
namespace {

ProgramTensor persistent(std::string name, DType dtype, Shape shape, std::string initializer,
                         uint32_t index) {
  ProgramTensor tensor;
  tensor.name = std::move(name);
  tensor.kind = TensorKind::kParameter;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.initializer = std::move(initializer);
  tensor.region = {Region::Space::kTensor, index, 0, storage_bytes(tensor.shape, dtype)};
  return tensor;
}

class ParameterStoreTest : public testing::Test {
 protected:
  Device device_{device::open_interpreter()};
};

TEST_F(ParameterStoreTest, DrawsInitialValuesFromSeedAndName) {
  Program program;
  program.tensors = {persistent("a", f32, {3, 5}, "normal(0, 0.5)", 0),
                     persistent("b", f32, {3, 5}, "uniform(-2, 2)", 1),
                     persistent("c", f16, {3}, "ones", 2),
                     persistent("d", u8, {5}, "constant(7)", 3), persistent("e", f32, {2}, "", 4)};
  for (uint64_t seed : {0u, 12u}) {
    ParameterStore store(device_, seed);
    store.add(program);
    for (const ProgramTensor& tensor : program.tensors) {
      const Initializer initializer = tensor.initializer.empty()
                                          ? Initializer::zeros()
                                          : Initializer::parse(tensor.initializer);
      EXPECT_EQ(store.read(tensor.name).bytes,
                initial_bytes(tensor.name, tensor.shape, tensor.dtype, initializer, seed))
          << tensor.name;
      EXPECT_EQ(store.type(tensor.name).dtype, tensor.dtype);
      EXPECT_EQ(store.type(tensor.name).shape, tensor.shape);
    }
    EXPECT_EQ(store.names(), (std::vector<std::string>{"a", "b", "c", "d", "e"}));
    EXPECT_EQ(store.bytes(), 5 * 256u);
  }
}

TEST_F(ParameterStoreTest, KeepsValuesWhenAnotherProgramAddsTensors) {
  Program first;
  first.tensors = {persistent("a", f32, {2}, "ones", 0)};
  Program second;
  second.tensors = {persistent("b", f32, {2}, "ones", 0), persistent("a", f32, {2}, "zeros", 1)};
  ParameterStore store(device_);
  store.add(first);
  const std::vector<float> value = {5, 6};
  store.write("a", view(value));
  store.add(second);
  EXPECT_EQ(floats(store.read("a")), value);
  EXPECT_EQ(floats(store.read("b")), (std::vector<float>{1, 1}));
  EXPECT_EQ(store.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(store.contains("b"));
  EXPECT_FALSE(store.contains("c"));
}

TEST_F(ParameterStoreTest, RefusesConflictsWithoutChange) {
  Program first;
  first.tensors = {persistent("a", f32, {2}, "ones", 0)};
  ParameterStore store(device_);
  store.add(first);
  Program other;
  other.tensors = {persistent("b", f32, {2}, "ones", 0), persistent("a", f32, {3}, "ones", 1)};
  const Error shape = error_of([&] { store.add(other); });
  EXPECT_EQ(shape.kind(), ErrorKind::kShape);
  EXPECT_TRUE(mentions(shape, "\"a\" as f32 [2]")) << shape.what();
  EXPECT_TRUE(mentions(shape, "f32 [3]")) << shape.what();
  other.tensors[1] = persistent("a", i32, {2}, "ones", 1);
  EXPECT_EQ(error_of([&] { store.add(other); }).kind(), ErrorKind::kShape);
  EXPECT_FALSE(store.contains("b"));
  other.tensors = {persistent("b", f32, {2}, "nonsense(1)", 0)};
  EXPECT_THROW(store.add(other), Error);
  EXPECT_FALSE(store.contains("b"));
}

TEST_F(ParameterStoreTest, ReadsAndWritesBeyondOneStagingBuffer) {
  constexpr int64_t kElements = 5'000'001;  // 20 MB, and an odd end
  Program program;
  program.tensors = {persistent("small", u8, {3}, "constant(9)", 0),
                     persistent("large", f32, {kElements}, "zeros", 1),
                     persistent("last", u8, {3}, "constant(8)", 2)};
  ParameterStore store(device_);
  store.add(program);
  std::vector<float> values(kElements);
  for (int64_t i = 0; i < kElements; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i);
  store.write("large", view(values));
  const HostTensor large = store.read("large");
  EXPECT_EQ(std::memcmp(large.bytes.data(), values.data(), large.bytes.size()), 0);
  EXPECT_EQ(store.read("small").bytes, std::vector<std::byte>(3, std::byte{9}));
  EXPECT_EQ(store.read("last").bytes, std::vector<std::byte>(3, std::byte{8}));
}

TEST_F(ParameterStoreTest, InitializesBeyondOneStagingBuffer) {
  constexpr int64_t kElements = 5'000'001;
  Program program;
  program.tensors = {persistent("large", f32, {kElements}, "constant(3)", 0),
                     persistent("last", f32, {1}, "constant(4)", 1)};
  ParameterStore store(device_);
  store.add(program);
  const HostTensor large = store.read("large");
  EXPECT_EQ(large.as<float>().front(), 3.0f);
  EXPECT_EQ(large.as<float>()[4'200'000], 3.0f);
  EXPECT_EQ(large.as<float>().back(), 3.0f);
  EXPECT_EQ(store.read("last").as<float>()[0], 4.0f);
}

TEST_F(ParameterStoreTest, NamesWhatItHoldsAndWhatDoesNotFit) {
  Program program;
  program.tensors = {persistent("a", f32, {2}, "ones", 0), persistent("b", boolean, {2}, "", 1)};
  ParameterStore store(device_);
  const Error nothing = error_of([&] { store.read("a"); });
  EXPECT_TRUE(mentions(nothing, "it holds nothing")) << nothing.what();
  store.add(program);
  const Error unknown = error_of([&] { store.read("weight"); });
  EXPECT_EQ(unknown.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(unknown, "\"weight\"; it holds a, b")) << unknown.what();
  const std::vector<float> three = {1, 2, 3};
  EXPECT_EQ(error_of([&] { store.write("a", view(three)); }).kind(), ErrorKind::kShape);
  const uint8_t flags[] = {1, 2};
  const Error flag = error_of([&] { store.write("b", {flags, boolean, Shape{2}}); });
  EXPECT_EQ(flag.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(flag, "holds 2 at [1]")) << flag.what();
}

TEST_F(ParameterStoreTest, SplitsIntoAllocationsThatTheDeviceAllows) {
  device::InterpreterOptions options;
  options.capabilities = device::interpreter_capabilities();
  options.capabilities->max_allocation_bytes = 1024;
  const Device small(device::open_interpreter(options));
  Program program;
  for (uint32_t i = 0; i < 5; ++i) {
    program.tensors.push_back(
        persistent("t" + std::to_string(i), f32, {100}, "constant(" + std::to_string(i) + ")", i));
  }
  ParameterStore store(small);
  store.add(program);
  EXPECT_EQ(store.bytes(), 5 * 512u);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(floats(store.read("t" + std::to_string(i))),
              std::vector<float>(100, static_cast<float>(i)));
  }
  program.tensors = {persistent("huge", f32, {257}, "ones", 0)};
  const Error error = error_of([&] { store.add(program); });
  EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  EXPECT_TRUE(mentions(error, "\"huge\" of f32 [257] takes 1280 bytes")) << error.what();
}

TEST_F(ParameterStoreTest, WritesStridedViews) {
  Program program;
  program.tensors = {persistent("a", i16, {2, 3}, "zeros", 0)};
  ParameterStore store(device_);
  store.add(program);
  const int16_t transposed[] = {0, 3, 1, 4, 2, 5};
  store.write("a", {transposed, i16, Shape{2, 3}, {1, 2}});
  const HostTensor read = store.read("a");
  for (int16_t i = 0; i < 6; ++i) EXPECT_EQ(read.as<int16_t>()[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace meganeura
