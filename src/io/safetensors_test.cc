#include "meganeura/safetensors.h"

#include <algorithm>
#include <filesystem>

#include "base/platform_file.h"
#include "io/test_support.h"

namespace meganeura {
namespace {

using test::Bytes;
using test::expect_error;
using test::safetensors_file;

SafetensorsFile read(std::string_view header, size_t data_bytes) {
  return SafetensorsFile::parse(safetensors_file(header, data_bytes), "the file");
}

struct Refusal {
  const char* name;
  const char* header;
  size_t data_bytes;
  const char* message;
  ErrorKind kind = ErrorKind::kFile;
};

// Every rule of the format, broken once.
const Refusal kRefusals[] = {
    {"NotJson", R"({"x" nonsense)", 0, "not JSON"},
    {"Empty", "", 0, "does not start"},
    {"List", "[]", 0, "does not start"},
    {"Text", R"("x")", 0, "does not start"},
    {"SpaceInFront", " {}", 0, "does not start"},
    {"TextBehind", "{} {}", 0, "not JSON"},
    {"InvalidUtf8", "{\"\xff\": 1}", 0, "not JSON"},
    {"DeepNesting", R"({"x":{"shape":[[[[[[[1]]]]]]]}})", 0, "nested"},
    {"EntryNotObject", R"({"x":[]})", 0, "an object was expected"},
    {"NoDType", R"({"x":{"shape":[],"data_offsets":[0,4]}})", 4, "no \"dtype\""},
    {"NoShape", R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4, "no \"shape\""},
    {"NoOffsets", R"({"x":{"dtype":"F32","shape":[]}})", 4, "no \"data_offsets\""},
    {"DTypeNumber", R"({"x":{"dtype":32,"shape":[],"data_offsets":[0,4]}})", 4, "a name was"},
    {"DTypeUnknown", R"({"x":{"dtype":"f32","shape":[],"data_offsets":[0,4]}})", 4, "unknown"},
    {"ShapeNumber", R"({"x":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "a list was"},
    {"NegativeExtent", R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
     "an extent of tensor \"x\" is -1"},
    {"FractionalExtent", R"({"x":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "1.0"},
    {"HugeExtent", R"({"x":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})",
     4, "too large"},
    {"NegativeOffset", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "is -4"},
    {"FractionalOffset", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4.5]}})", 4, "4.5"},
    {"TextOffset", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":["0",4]}})", 4, "\"0\""},
    {"OffsetBeyond64Bits",
     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551616]}})", 4,
     "a whole number"},
    {"ReversedOffsets", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "reversed"},
    {"ThreeOffsets", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 8, "two"},
    {"OffsetBehindEnd", R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
     "ends at 8, but the file has only 4"},
    {"SpanTooSmall", R"({"x":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", 4,
     "needs 4000000 bytes"},
    {"SpanTooLarge", R"({"x":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}})", 4,
     "needs 2 bytes"},
    {"ElementsOverflow",
     R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4,
     "impossible"},
    {"BytesOverflow", R"({"x":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})",
     4, "impossibly large"},
    {"Overlap",
     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
     4, "overlaps"},
    {"PartialOverlap",
     R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
     12, "overlaps"},
    {"EmptyInsideAnother",
     R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("y":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
     8, "overlaps"},
    {"HoleInFront", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "bytes 0 to 4"},
    {"HoleBetween",
     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("y":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12, "bytes 4 to 8"},
    {"TrailingBytes", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
     "1 bytes follow"},
    {"TrailingBytesWithoutTensors", "{}", 3, "3 bytes follow"},
    {"DuplicateName",
     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "\"x\" occurs twice"},
    {"DuplicateNameEscaped",
     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("\u0078":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "\"x\" occurs twice"},
    {"DuplicateField", R"({"x":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4,
     "\"dtype\" occurs twice"},
    {"DuplicateMetadata", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "\"a\" occurs twice"},
    {"MetadataNotObject", R"({"__metadata__":"a"})", 0, "is not an object"},
    {"MetadataNotText", R"({"__metadata__":{"a":1}})", 0, "only strings"},
    {"Float8", R"({"x":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4, "F8_E4M3",
     ErrorKind::kUnsupported},
    {"Unsigned64", R"({"x":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}})", 8, "U64",
     ErrorKind::kUnsupported},
};

class SafetensorsRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(SafetensorsRefusal, NamesWhatIsWrong) {
  const Refusal& row = GetParam();
  expect_error(row.kind, row.message, [&] { read(row.header, row.data_bytes); });
  expect_error(row.kind, "the file", [&] { read(row.header, row.data_bytes); });
}

INSTANTIATE_TEST_SUITE_P(Rules, SafetensorsRefusal, testing::ValuesIn(kRefusals),
                         [](const auto& test) { return test.param.name; });

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  Bytes file = safetensors_file("{}", 0);
  file[0] = std::byte{200};
  expect_error(ErrorKind::kFile, "only 2 follow",
               [&] { SafetensorsFile::parse(file, "the file"); });
}

TEST(Safetensors, RefusesAHeaderBeyondTheLimit) {
  Bytes file = safetensors_file("{}", 0);
  const uint64_t length = 100'000'001;
  std::memcpy(file.data(), &length, 8);
  expect_error(ErrorKind::kFile, "allows 100000000",
               [&] { SafetensorsFile::parse(file, "the file"); });
}

TEST(Safetensors, RefusesEveryTruncation) {
  const Bytes whole =
      safetensors_file(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    expect_error(ErrorKind::kFile, "not a valid", [&] { SafetensorsFile::parse(cut, "the file"); });
  }
}

TEST(Safetensors, ReadsAnUnorderedHeader) {
  const SafetensorsFile file = read(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                                    R"("a":{"data_offsets":[3,5],"shape":[2],"dtype":"U8"},)"
                                    R"("c":{"dtype":"I8","shape":[1,1],"data_offsets":[2,3]}})",
                                    5);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.at("a").bytes[0], std::byte{3});
  EXPECT_EQ(file.at("b").bytes[1], std::byte{1});
  EXPECT_EQ(file.at("c").dtype, DType::kI8);
  EXPECT_EQ(file.at("c").shape, (Shape{1, 1}));
}

TEST(Safetensors, ReadsAMisalignedTensor) {
  const SafetensorsFile file = read(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                    5);
  EXPECT_EQ(file.at("b").bytes[0], std::byte{1});
  EXPECT_EQ(file.at("b").bytes.size(), 4u);
}

TEST(Safetensors, ReadsScalarsAndEmptyTensors) {
  const SafetensorsFile file =
      read(R"({"empty":{"dtype":"F32","shape":[3,0,2],"data_offsets":[0,0]},)"
           R"("scalar":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},)"
           R"("tail":{"dtype":"F64","shape":[0],"data_offsets":[2,2]}})",
           2);
  EXPECT_EQ(file.at("empty").shape, (Shape{3, 0, 2}));
  EXPECT_TRUE(file.at("empty").bytes.empty());
  EXPECT_EQ(file.at("scalar").shape.rank(), 0);
  EXPECT_EQ(file.at("scalar").dtype, DType::kBF16);
  EXPECT_EQ(file.at("scalar").bytes.size(), 2u);
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  EXPECT_TRUE(read("{}   ", 0).tensors().empty());
  EXPECT_EQ(read(R"({"__metadata__":{"format":"pt"}})", 0).metadata(),
            (Metadata{{"format", "pt"}}));
}

TEST(Safetensors, NamesAMissingTensor) {
  const SafetensorsFile file = read("{}", 0);
  EXPECT_EQ(file.find("x"), nullptr);
  expect_error(ErrorKind::kFile, "no tensor \"x\"", [&] { file.at("x"); });
}

// A tensor of each dtype with a few elements.
struct Sample {
  std::vector<Bytes> storage;
  std::vector<NamedTensor> tensors;
};

Sample sample_of_every_dtype() {
  Sample sample;
  const DType dtypes[] = {f32, f16, bf16, f64, i8, u8, i16, i32, u32, i64, boolean};
  const Shape shapes[] = {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 1, 3}};
  uint8_t next = 1;
  for (DType dtype : dtypes) {
    for (const Shape& shape : shapes) {
      Bytes& bytes = sample.storage.emplace_back(storage_bytes(shape, dtype));
      for (std::byte& byte : bytes) byte = std::byte{next++};
      const std::string name = std::string(info(dtype).name) + "/" + shape.to_string();
      sample.tensors.push_back({name, dtype, shape, {}});
    }
  }
  for (size_t i = 0; i < sample.tensors.size(); ++i) sample.tensors[i].bytes = sample.storage[i];
  return sample;
}

void expect_same(const SafetensorsFile& file, const Sample& sample) {
  ASSERT_EQ(file.tensors().size(), sample.tensors.size());
  for (const NamedTensor& expected : sample.tensors) {
    const NamedTensor& found = file.at(expected.name);
    EXPECT_EQ(found.dtype, expected.dtype);
    EXPECT_EQ(found.shape, expected.shape);
    EXPECT_TRUE(std::ranges::equal(found.bytes, expected.bytes)) << expected.name;
  }
}

TEST(SafetensorsWriter, RoundTripsEveryDType) {
  const Sample sample = sample_of_every_dtype();
  const Metadata metadata = {{"step", "12"}, {"text", "line\n\"quoted\" é"}, {"", ""}};
  const SafetensorsFile file =
      SafetensorsFile::parse(serialize_safetensors(sample.tensors, metadata), "x");
  expect_same(file, sample);
  EXPECT_EQ(file.metadata(), metadata);
}

TEST(SafetensorsWriter, DoesNotDependOnTheOrderOfTheTensors) {
  Sample sample = sample_of_every_dtype();
  const Bytes first = serialize_safetensors(sample.tensors);
  std::ranges::reverse(sample.tensors);
  EXPECT_EQ(serialize_safetensors(sample.tensors), first);
}

TEST(SafetensorsWriter, AlignsTheData) {
  const Sample sample = sample_of_every_dtype();
  const Bytes bytes = serialize_safetensors(sample.tensors);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "x");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::byte* start = file.at("f64/[]").bytes.data();  // 8 bytes wide, first by name
  for (const NamedTensor& tensor : file.tensors())
    EXPECT_EQ((tensor.bytes.data() - start) % info(tensor.dtype).block_bytes, 0) << tensor.name;
}

TEST(SafetensorsWriter, WritesTheKnownBytes) {
  const Bytes data = test::to_bytes("abcd");
  const NamedTensor tensor{"w", f32, {1}, data};
  const std::string header =
      R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  Bytes expected = safetensors_file(header + std::string((8 - header.size() % 8) % 8, ' '), 0);
  expected.insert(expected.end(), data.begin(), data.end());
  EXPECT_EQ(serialize_safetensors({&tensor, 1}, {{"a", "b"}}), expected);
}

TEST(SafetensorsWriter, WritesNoTensors) {
  EXPECT_TRUE(SafetensorsFile::parse(serialize_safetensors({}), "x").tensors().empty());
}

TEST(SafetensorsWriter, RefusesWhatTheReaderRefuses) {
  const Bytes four(4);
  const NamedTensor good{"x", f32, {1}, four};
  const std::vector<NamedTensor> twice = {good, good};
  expect_error(ErrorKind::kInvalidArgument, "\"x\"", [&] { serialize_safetensors(twice); });
  const auto refuse = [&](std::string_view part, const NamedTensor& tensor,
                          const Metadata& metadata = {}) {
    expect_error(ErrorKind::kInvalidArgument, part, [&] {
      serialize_safetensors({&tensor, 1}, metadata);
    });
  };
  refuse("needs 8 bytes, but 4", {"x", f32, {2}, four});
  refuse("reserves", {"__metadata__", f32, {1}, four});
  refuse("UTF-8", {"\xff", f32, {1}, four});
  refuse("UTF-8", good, {{"key", "\xc3"}});
  refuse("allows 100000000", good, {{"key", std::string(100'000'000, 'x')}});
}

TEST(SafetensorsWriter, ReplacesAFileOrLeavesItWhole) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / "meganeura_safetensors_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const std::filesystem::path path = directory / "model.safetensors";
  const Sample sample = sample_of_every_dtype();
  save_safetensors(path, sample.tensors, {{"step", "1"}});
  const SafetensorsFile old = SafetensorsFile::open(path);
  expect_same(old, sample);

  const NamedTensor bad{"x", f32, {9}, {}};
  EXPECT_THROW(save_safetensors(path, {&bad, 1}), Error);
  EXPECT_EQ(SafetensorsFile::open(path).metadata().at("step"), "1");

  save_safetensors(path, {}, {{"step", "2"}});
  EXPECT_EQ(SafetensorsFile::open(path).metadata().at("step"), "2");
  expect_same(old, sample);  // what was open keeps the old contents
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);

  expect_error(ErrorKind::kFile, "no_such_directory",
               [&] { save_safetensors(directory / "no_such_directory" / "x", sample.tensors); });
  expect_error(ErrorKind::kFile, "missing.safetensors",
               [&] { SafetensorsFile::open(directory / "missing.safetensors"); });
  std::filesystem::remove_all(directory);
}

TEST(SafetensorsFile, IsCheapToCopyAndKeepsItsBytes) {
  NamedTensor copy;
  SafetensorsFile kept = read("{}", 0);
  {
    const SafetensorsFile file =
        read(R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3);
    copy = file.at("x");
    kept = file;
  }
  EXPECT_EQ(copy.bytes.data(), kept.at("x").bytes.data());
  EXPECT_EQ(copy.bytes[2], std::byte{2});
}

}  // namespace
}  // namespace meganeura
