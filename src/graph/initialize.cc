#include "graph/initialize.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "graph/values.h"

namespace meganeura {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;

// 53 random bits as a number in [0, 1).
double unit(uint32_t high, uint32_t low) {
  const double bits = static_cast<double>(high >> 5) * 67108864.0 + static_cast<double>(low >> 6);
  return std::ldexp(bits, -53);
}

// Two numbers in [0, 1) for every pair of elements.
class UnitPairs {
 public:
  UnitPairs(std::string_view name, uint64_t seed)
      : hash_(fnv1a(name)), key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  std::array<double, 2> operator()(uint64_t pair) const {
    const std::array<uint32_t, 4> words =
        philox4x32({static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32),
                    static_cast<uint32_t>(hash_), static_cast<uint32_t>(hash_ >> 32)},
                   key_);
    return {unit(words[0], words[1]), unit(words[2], words[3])};
  }

 private:
  uint64_t hash_;
  std::array<uint32_t, 2> key_;
};

std::array<double, 2> uniform_pair(const Initializer& initializer, std::array<double, 2> u) {
  const double width = initializer.b - initializer.a;
  return {initializer.a + width * u[0], initializer.a + width * u[1]};
}

std::array<double, 2> normal_pair(const Initializer& initializer, std::array<double, 2> u) {
  const double radius = initializer.b * std::sqrt(-2.0 * std::log1p(-u[0]));
  const double angle = 2.0 * std::numbers::pi * u[1];
  return {initializer.a + radius * std::cos(angle), initializer.a + radius * std::sin(angle)};
}

double constant_of(const Initializer& initializer) {
  switch (initializer.kind) {
    case Initializer::Kind::kOnes:
      return 1.0;
    case Initializer::Kind::kConstant:
      return initializer.a;
    default:
      return 0.0;
  }
}

void check(std::string_view name, DType dtype, const Initializer& initializer) {
  using Kind = Initializer::Kind;
  const bool random = initializer.kind == Kind::kUniform || initializer.kind == Kind::kNormal;
  if (random && !is_float(dtype)) {
    fail(ErrorKind::kInvalidArgument, "The initializer ", initializer.to_string(), " of \"", name,
         "\" draws real numbers, but the tensor is ", dtype,
         ". Use zeros, ones or a constant, or a float dtype.");
  }
  const bool sound = std::isfinite(initializer.a) && std::isfinite(initializer.b) &&
                     (initializer.kind != Kind::kUniform || initializer.a <= initializer.b) &&
                     (initializer.kind != Kind::kNormal || initializer.b >= 0.0);
  if (random && !sound) {
    fail(ErrorKind::kInvalidArgument, "The initializer ", initializer.to_string(), " of \"", name,
         "\" is empty: a uniform one needs finite bounds with low <= high, a normal one a finite "
         "mean and a finite deviation of 0 or more.");
  }
  const double first = constant_of(initializer);
  if (!is_float(dtype) && as_stored(dtype, first) != first) {
    fail(ErrorKind::kInvalidArgument, "The initializer ", initializer.to_string(), " of \"", name,
         "\" is not a value of ", dtype, ". Use one that the dtype can hold.");
  }
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::vector<double> initial_value(std::string_view name, const Shape& shape, DType dtype,
                                  const Initializer& initializer, uint64_t seed) {
  check(name, dtype, initializer);
  const auto count = static_cast<size_t>(shape.elements());
  const bool uniform = initializer.kind == Initializer::Kind::kUniform;
  if (!uniform && initializer.kind != Initializer::Kind::kNormal) {
    return std::vector<double>(count, as_stored(dtype, constant_of(initializer)));
  }
  std::vector<double> values(count);
  const UnitPairs pairs(name, seed);
  const auto draw = uniform ? uniform_pair : normal_pair;
  for (size_t i = 0; i < count; i += 2) {
    const std::array<double, 2> pair = draw(initializer, pairs(i / 2));
    for (size_t k = 0; k < 2 && i + k < count; ++k) values[i + k] = as_stored(dtype, pair[k]);
  }
  return values;
}

std::vector<std::byte> initial_bytes(std::string_view name, const Shape& shape, DType dtype,
                                     const Initializer& initializer, uint64_t seed) {
  return encode_values(dtype, initial_value(name, shape, dtype, initializer, seed));
}

}  // namespace meganeura
