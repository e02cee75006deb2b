#include "device/vulkan/arithmetic_check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/vulkan/arithmetic_check_words.h"

namespace meganeura::device::vulkan {
namespace {

constexpr uint32_t kCases = 4096;
constexpr uint32_t kLocalSize = 64;
constexpr uint32_t kExponentSpread = 48;  // keeps products, quotients and sums normal

// Marsaglia's xorshift: only variety matters here.
uint32_t next_bits(uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

float varied(uint32_t& state) {
  const uint32_t bits = next_bits(state);
  const uint32_t exponent = 127 - kExponentSpread / 2 + next_bits(state) % kExponentSpread;
  return std::bit_cast<float>((bits & 0x807fffffu) | exponent << 23);
}

// Triples (a, b, c) with a > 0; in every second one c nearly cancels a·b, so that a product
// rounded on its own shows.
std::vector<float> make_triples() {
  std::vector<float> values(3 * kCases);
  uint32_t state = 0x9e3779b9u;
  for (uint32_t i = 0; i < kCases; ++i) {
    const float a = std::fabs(varied(state));
    const float b = varied(state);
    const float c = i % 2 == 0 ? varied(state) : -(a * b);
    values[3 * i] = a;
    values[3 * i + 1] = b;
    values[3 * i + 2] = c;
  }
  return values;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

bool is_normal_or_zero(float value) {
  return value == 0.0f || std::fabs(value) >= std::numeric_limits<float>::min();
}

std::vector<float> run(Device& device, const std::vector<float>& values) {
  Module module;
  module.name = "arithmetic check";
  module.words.assign(std::begin(kArithmeticCheckWords), std::end(kArithmeticCheckWords));
  module.binding = BindingMode::kDescriptor;
  module.slots = 2;
  module.local_size = {kLocalSize, 1, 1};
  const auto pipelines = device.create_pipelines({&module, 1});
  const uint64_t bytes = values.size() * sizeof(float);
  const auto source = device.allocate(bytes, MemoryKind::kUpload);
  const auto result = device.allocate(bytes, MemoryKind::kReadback);
  std::memcpy(source->mapped(), values.data(), bytes);
  Command command;
  command.kind = Command::Kind::kDispatch;
  command.label = module.name;
  command.pipeline = pipelines.front().get();
  command.grid = {kCases / kLocalSize, 1, 1};
  command.bindings = {{{source.get(), 0, bytes}, true, false},
                      {{result.get(), 0, bytes}, false, true}};
  const auto recording = device.record({&command, 1});
  Recording* recordings[] = {recording.get()};
  device.wait(device.submit(recordings));
  std::vector<float> out(values.size());
  std::memcpy(out.data(), result->mapped(), bytes);
  return out;
}

}  // namespace

ArithmeticFacts check_arithmetic(Device& device) {
  const std::vector<float> values = make_triples();
  const std::vector<float> results = run(device, values);
  ArithmeticFacts facts{true, true, true};
  for (uint32_t i = 0; i < kCases; ++i) {
    const float a = values[3 * i];
    const float b = values[3 * i + 1];
    const float c = values[3 * i + 2];
    const float fused = std::fma(a, b, c);
    // Denormal results say nothing: flushing them is another fact.
    if (is_normal_or_zero(fused)) facts.fused_fma &= same_bits(results[3 * i], fused);
    facts.exact_division &= same_bits(results[3 * i + 1], a / b);
    facts.exact_sqrt &= same_bits(results[3 * i + 2], std::sqrt(a));
  }
  return facts;
}

}  // namespace meganeura::device::vulkan
