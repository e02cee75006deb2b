#include "device/vulkan/cache_file.h"

#include <fstream>

#include "device/vulkan/test_support.h"

namespace meganeura::device::vulkan {
namespace {

namespace fs = std::filesystem;

class CacheFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::temp_directory_path() / (std::string("meganeura_cache_") + test->name());
    fs::remove_all(directory_);
    path_ = directory_ / "deeper" / "cache.bin";
    for (int i = 0; i < 100; ++i) data_.push_back(static_cast<std::byte>(i * 3));
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path directory_;
  fs::path path_;
  std::vector<std::byte> data_;
};

TEST_F(CacheFileTest, ReturnsWhatWasStoredUnderTheKey) {
  EXPECT_TRUE(load_cache_file(path_, "key").empty());
  ASSERT_TRUE(save_cache_file(path_, "key", data_));
  EXPECT_EQ(load_cache_file(path_, "key"), data_);
  EXPECT_TRUE(load_cache_file(path_, "another key").empty());
  data_.push_back(std::byte{1});
  ASSERT_TRUE(save_cache_file(path_, "key", data_));
  EXPECT_EQ(load_cache_file(path_, "key"), data_);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), {}), 1);
}

TEST_F(CacheFileTest, IgnoresDamageAnywhere) {
  ASSERT_TRUE(save_cache_file(path_, "key", data_));
  std::ifstream in(path_, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  in.close();
  const auto rewrite = [&](const std::string& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    rewrite(bad);
    EXPECT_TRUE(load_cache_file(path_, "key").empty()) << "byte " << i;
  }
  for (size_t size : {size_t{0}, size_t{5}, good.size() - 1}) {
    rewrite(good.substr(0, size));
    EXPECT_TRUE(load_cache_file(path_, "key").empty()) << size << " bytes";
  }
  rewrite(good + "x");
  EXPECT_TRUE(load_cache_file(path_, "key").empty());
}

TEST_F(CacheFileTest, ReportsAFileThatCannotBeWritten) {
  fs::create_directories(path_);  // a directory stands where the file should
  EXPECT_FALSE(save_cache_file(path_, "key", data_));
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), {}), 1);
}

TEST_F(CacheFileTest, DevicesSaveTheirPipelinesAndReadThemBack) {
  OpenOptions options;
  options.cache_directory = directory_;
  std::string why;
  if (!open_for_test(options, why)) GTEST_SKIP() << "No usable Vulkan device: " << why;
  ASSERT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
  const fs::path file = *fs::directory_iterator(directory_);
  EXPECT_GT(fs::file_size(file), 32u);
  EXPECT_TRUE(open_for_test(options, why));
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_TRUE(open_for_test(options, why));
}

}  // namespace
}  // namespace meganeura::device::vulkan
