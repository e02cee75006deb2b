#include <filesystem>
#include <numeric>

#include "base/platform_file.h"
#include "io/test_support.h"
#include "meganeura/data.h"

namespace meganeura {
namespace {

using test::expect_error;
using test::idx_file;

const std::filesystem::path kMnist = std::filesystem::path(MEGANEURA_SOURCE_DIR) / "data/mnist";

class DatasetFiles : public testing::Test {
 protected:
  DatasetFiles()
      : directory_(std::filesystem::temp_directory_path() /
                   (std::string("meganeura_dataset_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~DatasetFiles() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path write(const char* name, const test::Bytes& bytes) const {
    write_file_atomically(directory_ / name, std::span(bytes));
    return directory_ / name;
  }

  std::filesystem::path directory_;
};

TEST(Mnist, HasTheKnownContents) {
  const Dataset train = read_mnist(kMnist, Split::kTrain);
  EXPECT_EQ(train.size(), 12000);
  EXPECT_EQ(train.channels, 1);
  EXPECT_EQ(train.height, 28);
  EXPECT_EQ(train.width, 28);
  EXPECT_EQ(train.classes, 10u);
  const std::vector<uint32_t> first(train.labels.begin(), train.labels.begin() + 8);
  EXPECT_EQ(first, (std::vector<uint32_t>{5, 0, 4, 1, 9, 2, 1, 3}));
  const auto five = train.image(0);
  EXPECT_EQ(std::accumulate(five.begin(), five.end(), 0), 27525);

  const Dataset test = read_mnist(kMnist, Split::kTest);
  EXPECT_EQ(test.size(), 2000);
  const std::vector<uint32_t> digits(test.labels.begin(), test.labels.begin() + 5);
  EXPECT_EQ(digits, (std::vector<uint32_t>{7, 2, 1, 0, 4}));
}

TEST(Mnist, ListsTheNamesItLookedFor) {
  expect_error(ErrorKind::kFile, "t10k-images-idx3-ubyte.gz",
               [] { read_mnist(std::filesystem::path("no/such/directory"), Split::kTest); });
}

TEST_F(DatasetFiles, AcceptsTheOriginalNamesOfTheTestSplit) {
  write("t10k-images-idx3-ubyte", idx_file(0x803, {2, 1, 2}, {1, 2, 3, 4}));
  write("t10k-labels-idx1-ubyte.gz", test::gzip(idx_file(0x801, {2}, {3, 9})));
  const Dataset dataset = read_mnist(directory_, Split::kTest);
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.image(1)[0], 3);
  EXPECT_EQ(dataset.labels[1], 9u);
}

TEST_F(DatasetFiles, RefusesFilesThatDoNotFitEachOther) {
  const auto images = write("images", idx_file(0x803, {2, 1, 2}, {1, 2, 3, 4}));
  const auto one = write("one", idx_file(0x801, {1}, {3}));
  const auto ten = write("ten", idx_file(0x801, {2}, {3, 10}));
  expect_error(ErrorKind::kFile, "2 images", [&] { read_idx_dataset(images, one, 10); });
  expect_error(ErrorKind::kFile, "Label 1", [&] { read_idx_dataset(images, ten, 10); });
  EXPECT_EQ(read_idx_dataset(images, ten, 11).labels[1], 10u);
  expect_error(ErrorKind::kFile, "images need three", [&] { read_idx_dataset(one, one, 10); });
  expect_error(ErrorKind::kFile, "labels need one", [&] { read_idx_dataset(images, images, 10); });
}

TEST_F(DatasetFiles, RefusesImagesWithoutPixels) {
  const auto images = write("images", idx_file(0x803, {2, 0, 2}, {}));
  const auto labels = write("labels", idx_file(0x801, {2}, {3, 4}));
  expect_error(ErrorKind::kFile, "at least 1", [&] { read_idx_dataset(images, labels, 10); });
}

TEST(Dataset, HasNoImageOutsideItsSize) {
  Dataset dataset{"d", 1, 1, 2, 3, {1, 2, 3, 4}, {0, 2}};
  dataset.check();
  expect_error(ErrorKind::kInvalidArgument, "no image 2", [&] { dataset.image(2); });
  expect_error(ErrorKind::kInvalidArgument, "no image -1", [&] { dataset.image(-1); });
}

TEST(Dataset, KeepsTheFirstImages) {
  Dataset dataset{"d", 1, 1, 2, 3, {1, 2, 3, 4}, {0, 2}};
  dataset.truncate(5);
  EXPECT_EQ(dataset.size(), 2);
  dataset.truncate(1);
  dataset.check();
  EXPECT_EQ(dataset.images, (std::vector<uint8_t>{1, 2}));
  expect_error(ErrorKind::kInvalidArgument, "-1", [&] { dataset.truncate(-1); });
}

TEST(Dataset, RefusesSizesThatDisagree) {
  const Dataset dataset{"d", 1, 1, 2, 3, {1, 2, 3}, {0, 2}};
  expect_error(ErrorKind::kInvalidArgument, "ask for 4", [&] { dataset.check(); });
}

}  // namespace
}  // namespace meganeura
