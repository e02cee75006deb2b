#include "device/vulkan/arithmetic_check.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "device/vulkan/test_support.h"

namespace meganeura::device::vulkan {
namespace {

TEST(ArithmeticCheck, WordsAreTheAssembledText) {
  const std::string binary =
      (std::filesystem::temp_directory_path() / "meganeura_arithmetic_check.spv").string();
  const std::string command = "spirv-as --target-env vulkan1.2 " MEGANEURA_SOURCE_DIR
                              "/src/device/vulkan/arithmetic_check.spvasm -o " +
                              binary + " 2>/dev/null";
  if (std::system("spirv-as --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "spirv-as is not installed.";
  }
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream file(binary, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(binary);
  ASSERT_EQ(bytes.size(), sizeof(kArithmeticCheckWords));
  constexpr size_t kGenerator = 2;  // the assembler's own version
  for (size_t i = 0; i < std::size(kArithmeticCheckWords); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + 4 * i, 4);
    if (i == kGenerator) continue;
    EXPECT_EQ(word, kArithmeticCheckWords[i]) << "word " << i;
  }
}

// A device that computes on the host, with one fault on request.
class HostDevice final : public Device {
 public:
  enum class Fault { kNone, kUnfusedFma, kInexactDivision, kInexactRoot };
  explicit HostDevice(Fault fault) : fault_(fault) {}
  const DeviceInfo& info() const override { return info_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  CodeKind code() const override { return CodeKind::kSpirv; }
  std::unique_ptr<Memory> allocate(uint64_t bytes, MemoryKind) override {
    return std::make_unique<HostMemory>(bytes);
  }
  std::vector<std::unique_ptr<Pipeline>> create_pipelines(std::span<const Module>) override {
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    pipelines.push_back(std::make_unique<Pipeline>());
    return pipelines;
  }
  std::unique_ptr<Recording> record(std::span<const Command> commands) override {
    command_ = commands[0];
    return std::make_unique<Recording>();
  }
  uint64_t submit(std::span<Recording* const>) override {
    const auto* in = reinterpret_cast<const float*>(command_.bindings[0].span.memory->mapped());
    auto* out = reinterpret_cast<float*>(command_.bindings[1].span.memory->mapped());
    for (uint32_t i = 0; i < command_.grid[0] * 64; ++i) {
      const float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
      const float product = a * b;
      out[3 * i] = fault_ == Fault::kUnfusedFma ? product + c : std::fma(a, b, c);
      const float inverse = 1.0f / b;
      out[3 * i + 1] = fault_ == Fault::kInexactDivision ? a * inverse : a / b;
      const float root = std::sqrt(a);
      out[3 * i + 2] = fault_ == Fault::kInexactRoot && i == 7 ? std::nextafter(root, 0.0f) : root;
    }
    return 1;
  }
  void wait(uint64_t) override {}
  bool done(uint64_t) override { return true; }

 private:
  struct HostMemory final : Memory {
    explicit HostMemory(uint64_t bytes) : data(bytes) {}
    uint64_t bytes() const override { return data.size(); }
    std::byte* mapped() override { return data.data(); }
    std::vector<std::byte> data;
  };
  Fault fault_;
  DeviceInfo info_;
  Capabilities capabilities_;
  Command command_;
};

TEST(ArithmeticCheck, TellsExactArithmeticFromEveryFault) {
  const auto facts = [](HostDevice::Fault fault) {
    HostDevice device(fault);
    return check_arithmetic(device);
  };
  const ArithmeticFacts exact = facts(HostDevice::Fault::kNone);
  EXPECT_TRUE(exact.fused_fma && exact.exact_division && exact.exact_sqrt);
  EXPECT_FALSE(facts(HostDevice::Fault::kUnfusedFma).fused_fma);
  EXPECT_TRUE(facts(HostDevice::Fault::kUnfusedFma).exact_division);
  EXPECT_FALSE(facts(HostDevice::Fault::kInexactDivision).exact_division);
  EXPECT_TRUE(facts(HostDevice::Fault::kInexactDivision).fused_fma);
  EXPECT_FALSE(facts(HostDevice::Fault::kInexactRoot).exact_sqrt);
  EXPECT_TRUE(facts(HostDevice::Fault::kInexactRoot).exact_division);
}

}  // namespace
}  // namespace meganeura::device::vulkan
