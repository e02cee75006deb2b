// Seeded damage: every mutated file must be refused by an Error or load to something consistent.
#include "io/test_support.h"
#include "meganeura/data.h"
#include "meganeura/safetensors.h"

namespace meganeura {
namespace {

using test::Bytes;

constexpr int kMutations = 2000;

// Linear congruential numbers; the high bits are good enough to place damage.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  size_t below(size_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state_ >> 33) % bound;
  }

 private:
  uint64_t state_;
};

// One to four flips, truncations, insertions, deletions, repetitions or interesting digits.
Bytes mutate(Bytes bytes, Dice& dice) {
  static constexpr std::string_view kDigits = "0123456789-{}[],:\"e";
  for (size_t n = dice.below(4) + 1; n > 0 && !bytes.empty(); --n) {
    const size_t at = dice.below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (dice.below(6)) {
      case 0:
        bytes[at] ^= std::byte(1u << dice.below(8));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(place, std::byte(dice.below(256)));
        break;
      case 3:
        bytes.erase(place);
        break;
      case 4: {
        const size_t count = std::min<size_t>(dice.below(40) + 1, bytes.size() - at);
        const Bytes piece(place, place + static_cast<std::ptrdiff_t>(count));
        bytes.insert(place, piece.begin(), piece.end());
        break;
      }
      default:
        bytes[at] = std::byte(kDigits[dice.below(kDigits.size())]);
        break;
    }
  }
  return bytes;
}

struct Outcome {
  int loaded = 0;
  int refused = 0;
};

template <class Load>
Outcome try_mutations(const std::vector<Bytes>& files, Load load) {
  Dice dice(20240607);
  Outcome outcome;
  for (int i = 0; i < kMutations; ++i) {
    const Bytes damaged = mutate(files[static_cast<size_t>(i) % files.size()], dice);
    try {
      load(damaged);
      ++outcome.loaded;
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kFile || error.kind() == ErrorKind::kUnsupported)
          << error.what();
      ++outcome.refused;
    }
  }
  return outcome;
}

TEST(Mutations, OfSafetensorsAreRefusedOrConsistent) {
  const Bytes data(24, std::byte{7});
  const std::vector<NamedTensor> tensors = {{"layer.weight", f32, {2, 3}, data},
                                            {"layer.bias", f16, {2}, std::span(data).first(4)},
                                            {"empty", i64, {0, 5}, {}},
                                            {"flag", boolean, {}, std::span(data).first(1)}};
  const Bytes file = serialize_safetensors(tensors, {{"step", "3"}});
  const Outcome outcome = try_mutations({file}, [](const Bytes& bytes) {
    const SafetensorsFile loaded = SafetensorsFile::parse(bytes, "mutant");
    size_t covered = 0;
    for (const NamedTensor& tensor : loaded.tensors()) {
      EXPECT_EQ(tensor.bytes.size(), storage_bytes(tensor.shape, tensor.dtype));
      covered += tensor.bytes.size();
    }
    // What loads can be written, and reads back as the same tensors.
    const SafetensorsFile again = SafetensorsFile::parse(
        serialize_safetensors(loaded.tensors(), loaded.metadata()), "rewritten mutant");
    EXPECT_EQ(again.tensors().size(), loaded.tensors().size());
    EXPECT_EQ(again.metadata(), loaded.metadata());
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    EXPECT_EQ(covered + header + 8, bytes.size());
  });
  EXPECT_GT(outcome.refused, kMutations / 2);
  EXPECT_GT(outcome.loaded, 0);
}

TEST(Mutations, OfIdxAreRefusedOrConsistent) {
  const Bytes plain = test::idx_file(0x803, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Outcome outcome = try_mutations({plain, test::gzip(plain)}, [](const Bytes& bytes) {
    const IdxArray array = parse_idx(bytes, "mutant");
    uint64_t size = 1;
    for (uint32_t extent : array.extents) size *= extent;
    EXPECT_EQ(array.bytes.size(), size);
  });
  EXPECT_GT(outcome.refused, kMutations / 2);
  EXPECT_GT(outcome.loaded, 0);
}

}  // namespace
}  // namespace meganeura
