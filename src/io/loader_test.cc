#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>

#include "io/batch.h"
#include "io/test_support.h"
#include "meganeura/data.h"

namespace meganeura {
namespace {

using test::expect_error;

// `size` images of 2 x 3 pixels; pixel p of image i is i + p, its label i modulo 10.
Dataset small_dataset(int64_t size) {
  Dataset dataset{"small", 1, 2, 3, 10, {}, {}};
  for (int64_t i = 0; i < size; ++i) {
    dataset.labels.push_back(static_cast<uint32_t>(i % 10));
    for (int64_t p = 0; p < 6; ++p) dataset.images.push_back(static_cast<uint8_t>(i + p));
  }
  return dataset;
}

bool same(const Batch& a, const Batch& b) {
  return a.count == b.count && a.images == b.images && a.labels == b.labels &&
         a.indices == b.indices && a.position == b.position && a.next == b.next &&
         a.last_of_epoch == b.last_of_epoch;
}

TEST(EpochOrder, IsAPermutationThatDependsOnSeedAndEpochAlone) {
  const std::vector<uint32_t> order = epoch_order(1000, 7, 3);
  EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999u);
  EXPECT_EQ(order, epoch_order(1000, 7, 3));
  EXPECT_NE(order, epoch_order(1000, 8, 3));
  EXPECT_NE(order, epoch_order(1000, 7, 4));
}

// Computed independently from the published Philox, in Python.
TEST(EpochOrder, NeverChanges) {
  EXPECT_EQ(epoch_order(10, 0, 0), (std::vector<uint32_t>{4, 3, 9, 8, 0, 2, 7, 1, 5, 6}));
  EXPECT_EQ(epoch_order(10, 42, 1), (std::vector<uint32_t>{7, 0, 3, 2, 4, 9, 6, 8, 5, 1}));
}

TEST(EpochOrder, PutsEveryItemEverywhereEquallyOften) {
  constexpr int kSize = 5;
  constexpr int kEpochs = 5000;
  int counts[kSize][kSize] = {};
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<uint32_t> order = epoch_order(kSize, 1, epoch);
    for (int place = 0; place < kSize; ++place) ++counts[place][order[static_cast<size_t>(place)]];
  }
  // 1000 expected; the standard deviation is 28.
  for (const auto& row : counts) {
    for (int count : row) EXPECT_NEAR(count, 1000, 140);
  }
}

TEST(SampleShift, CoversItsRangeEvenly) {
  int counts[3][3] = {};
  for (uint32_t sample = 0; sample < 9000; ++sample) {
    const Shift shift = sample_shift(sample, 1, 5, 2);
    ASSERT_TRUE(shift.x >= -1 && shift.x <= 1 && shift.y >= -1 && shift.y <= 1);
    ++counts[shift.y + 1][shift.x + 1];
  }
  for (const auto& row : counts) {
    for (int count : row) EXPECT_NEAR(count, 1000, 150);
  }
}

TEST(DataLoader, KeepsTheOrderWithoutShuffling) {
  DataLoader loader(small_dataset(5), {.batch_size = 2, .shuffle = false});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  const Batch first = loader.next();
  EXPECT_EQ(first.count, 2);
  EXPECT_EQ(first.indices, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(first.labels, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(first.images[7], 2.0f / 255.0f);
  EXPECT_FALSE(first.last_of_epoch);
}

TEST(DataLoader, PadsTheLastBatch) {
  DataLoader loader(small_dataset(5), {.batch_size = 2, .shuffle = false, .mean = 0.5f});
  loader.next();
  loader.next();
  const Batch last = loader.next();
  EXPECT_EQ(last.count, 1);
  EXPECT_TRUE(last.last_of_epoch);
  EXPECT_EQ(last.indices, (std::vector<uint32_t>{4}));
  EXPECT_EQ(last.images.size(), 12u);
  EXPECT_EQ(last.labels, (std::vector<uint32_t>{4, 0}));
  for (size_t i = 6; i < 12; ++i) EXPECT_EQ(last.images[i], -0.5f);
  EXPECT_EQ(last.next, (LoaderPosition{1, 0}));
  EXPECT_EQ(loader.next().indices, (std::vector<uint32_t>{0, 1}));
}

TEST(DataLoader, LeavesOutAPartialBatchWhenAsked) {
  DataLoader loader(small_dataset(5), {.batch_size = 2, .shuffle = false, .drop_last = true});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_FALSE(loader.next().last_of_epoch);
  EXPECT_TRUE(loader.next().last_of_epoch);
  EXPECT_EQ(loader.position(), (LoaderPosition{1, 0}));
}

TEST(DataLoader, VisitsEverySampleOnceAnEpoch) {
  DataLoader loader(small_dataset(103), {.batch_size = 10, .seed = 3});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<uint32_t> seen;
    int64_t drawn = 0;
    for (int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
      const Batch batch = loader.next();
      drawn += batch.count;
      seen.insert(batch.indices.begin(), batch.indices.end());
      EXPECT_EQ(batch.last_of_epoch, i + 1 == loader.batches_per_epoch());
    }
    EXPECT_EQ(drawn, 103);
    EXPECT_EQ(seen.size(), 103u);
  }
}

TEST(DataLoader, Normalises) {
  Dataset dataset = small_dataset(1);
  dataset.images = {0, 51, 102, 153, 204, 255};
  DataLoader loader(std::move(dataset), {.batch_size = 1, .mean = 0.25f, .deviation = 0.5f});
  const std::vector<float> expected = {-0.5f, -0.1f, 0.3f, 0.7f, 1.1f, 1.5f};
  const Batch batch = loader.next();
  for (size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(batch.images[i], expected[i]);
}

TEST(DataLoader, ShiftsImagesByWholePixels) {
  const Dataset dataset = small_dataset(200);
  const LoaderOptions options{
      .batch_size = 200, .seed = 11, .shuffle = false, .max_shift = 1, .prefetch = 0};
  DataLoader loader(dataset, options);
  const Batch batch = loader.next();
  for (uint32_t i = 0; i < 200; ++i) {
    const Shift shift = sample_shift(i, 1, 11, 0);
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 3; ++x) {
        const int from_x = x - shift.x;
        const int from_y = y - shift.y;
        const bool inside = from_x >= 0 && from_x < 3 && from_y >= 0 && from_y < 2;
        const int pixel = inside ? dataset.image(i)[static_cast<size_t>(from_y * 3 + from_x)] : 0;
        EXPECT_EQ(batch.images[i * 6 + static_cast<size_t>(y * 3 + x)],
                  static_cast<float>(pixel / 255.0));
      }
    }
  }
}

TEST(DataLoader, GivesTheSameBatchesWhateverThePrefetching) {
  std::vector<Batch> reference;
  for (int prefetch : {0, 1, 2, 7}) {
    LoaderOptions options{.batch_size = 7, .seed = 5, .max_shift = 1, .prefetch = prefetch};
    DataLoader loader(small_dataset(31), options);
    for (size_t i = 0; i < 12; ++i) {
      Batch batch = loader.next();
      if (prefetch == 0) {
        reference.push_back(std::move(batch));
      } else {
        EXPECT_TRUE(same(batch, reference[i])) << "prefetch " << prefetch << ", batch " << i;
      }
    }
  }
}

TEST(DataLoader, ContinuesFromAnyPosition) {
  const LoaderOptions options{.batch_size = 7, .seed = 5, .max_shift = 1};
  DataLoader whole(small_dataset(31), options);
  for (int i = 0; i < 12; ++i) {
    const LoaderPosition position = whole.position();
    const Batch expected = whole.next();
    DataLoader resumed(small_dataset(31), options);
    resumed.seek(position);
    EXPECT_EQ(resumed.position(), position);
    EXPECT_TRUE(same(resumed.next(), expected));
    EXPECT_EQ(resumed.position(), whole.position());
  }
}

TEST(DataLoader, SeeksWhileItPrefetches) {
  DataLoader loader(small_dataset(31), {.batch_size = 7, .seed = 5, .prefetch = 3});
  const Batch first = loader.next();
  loader.next();
  loader.seek({0, 0});
  EXPECT_TRUE(same(loader.next(), first));
}

TEST(DataLoader, ContinuesWithAnotherBatchSize) {
  DataLoader loader(small_dataset(10), {.batch_size = 4, .shuffle = false});
  loader.seek({2, 7});
  const Batch batch = loader.next();
  EXPECT_EQ(batch.indices, (std::vector<uint32_t>{7, 8, 9}));
  EXPECT_EQ(batch.next, (LoaderPosition{3, 0}));
}

TEST(DataLoader, RefusesPositionsThatDoNotExist) {
  DataLoader loader(small_dataset(10), {.batch_size = 4});
  expect_error(ErrorKind::kInvalidArgument, "sample 10", [&] { loader.seek({0, 10}); });
  expect_error(ErrorKind::kInvalidArgument, "sample -1", [&] { loader.seek({0, -1}); });
  DataLoader whole_batches(small_dataset(10), {.batch_size = 4, .drop_last = true});
  whole_batches.seek({0, 4});
  EXPECT_EQ(whole_batches.next().count, 4);
  expect_error(ErrorKind::kInvalidArgument, "0 to 4", [&] { whole_batches.seek({0, 5}); });
}

TEST(DataLoader, CarriesExceptionsOutOfTheThread) {
  for (int prefetch : {0, 2}) {
    LoaderOptions options{.batch_size = 2, .shuffle = false, .prefetch = prefetch};
    options.transform = [](Batch& batch) {
      if (batch.position.index == 4) throw std::runtime_error("no such augmentation");
    };
    DataLoader loader(small_dataset(10), options);
    EXPECT_EQ(loader.next().indices[0], 0u);
    EXPECT_EQ(loader.next().indices[0], 2u);
    EXPECT_THROW(loader.next(), std::runtime_error);
    EXPECT_THROW(loader.next(), std::runtime_error);
    EXPECT_EQ(loader.position(), (LoaderPosition{0, 4}));
    loader.seek({0, 6});
    EXPECT_EQ(loader.next().indices[0], 6u);
  }
}

TEST(DataLoader, PreparesNoMoreThanAskedAhead) {
  std::atomic<int> made = 0;
  LoaderOptions options{.batch_size = 1, .prefetch = 3};
  options.transform = [&](Batch&) { ++made; };
  {
    DataLoader loader(small_dataset(10), options);
    for (int taken = 1; taken <= 20; ++taken) {
      loader.next();
      // The queue, and one batch that waits for a place in it.
      EXPECT_LE(made.load(), taken + 3 + 1);
    }
  }
  EXPECT_GE(made.load(), 20);
}

TEST(DataLoader, CanBeMovedAndDroppedWhileItPrefetches) {
  DataLoader first(small_dataset(100), {.batch_size = 3, .shuffle = false});
  first.next();
  DataLoader second = std::move(first);
  EXPECT_EQ(second.next().indices[0], 3u);
  second = DataLoader(small_dataset(100), {.batch_size = 5, .shuffle = false});
  EXPECT_EQ(second.next().count, 5);
}

TEST(DataLoader, RefusesOptionsThatMakeNoSense) {
  const auto refuse = [](std::string_view part, LoaderOptions options, int64_t size = 4) {
    expect_error(ErrorKind::kInvalidArgument, part,
                 [&] { DataLoader loader(small_dataset(size), options); });
  };
  refuse("batch size is 0", {.batch_size = 0});
  refuse("more memory", {.batch_size = INT64_MAX});
  refuse("is empty", {}, 0);
  refuse("smaller batch size", {.batch_size = 5, .drop_last = true});
  refuse("max_shift is 2", {.max_shift = 2});
  refuse("max_shift is -1", {.max_shift = -1});
  refuse("deviation is 0", {.deviation = 0.0f});
  refuse("mean is inf", {.mean = std::numeric_limits<float>::infinity()});
  refuse("prefetch is -1", {.prefetch = -1});
  expect_error(ErrorKind::kInvalidArgument, "null",
               [] { DataLoader loader(std::shared_ptr<const Dataset>(), {}); });
}

}  // namespace
}  // namespace meganeura
