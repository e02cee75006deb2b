#include "base/platform_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include "meganeura/error.h"

namespace meganeura {
namespace {

namespace fs = std::filesystem;

class PlatformFile : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::path(testing::TempDir()) / (std::string("platform_file_") + info->name());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), {}));
  }

  fs::path directory_;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(PlatformFile, WritesReplacesAndReadsBack) {
  const fs::path path = directory_ / "a.bin";
  write_file_atomically(path, bytes_of("first"));
  EXPECT_EQ(text_of(read_file(path)), "first");
  const std::array parts = {bytes_of("sec"), bytes_of(""), bytes_of("ond")};
  write_file_atomically(path, parts);
  EXPECT_EQ(text_of(read_file(path)), "second");
  EXPECT_EQ(files(), 1u);
}

TEST_F(PlatformFile, ReadsFilesLargerThanABlockAndEmptyOnes) {
  std::vector<std::byte> large((size_t{1} << 20) + 17);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7);
  write_file_atomically(directory_ / "large", large);
  EXPECT_EQ(read_file(directory_ / "large"), large);
  const MappedFile mapped(directory_ / "large");
  EXPECT_TRUE(std::ranges::equal(mapped.bytes(), large));
  write_file_atomically(directory_ / "empty", std::span<const std::byte>());
  EXPECT_TRUE(read_file(directory_ / "empty").empty());
  EXPECT_TRUE(MappedFile(directory_ / "empty").bytes().empty());
}

TEST_F(PlatformFile, KeepsPermissionsAndLinks) {
  const fs::path path = directory_ / "target";
  write_file_atomically(path, bytes_of("old"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", directory_ / "link");
  write_file_atomically(directory_ / "link", bytes_of("new"));
  EXPECT_TRUE(fs::is_symlink(directory_ / "link"));
  EXPECT_EQ(text_of(read_file(path)), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(PlatformFile, AFailedSaveLeavesTheOldFileAndNoOther) {
  fs::create_directories(directory_ / "occupied" / "inside");
  const std::string message =
      message_of([&] { write_file_atomically(directory_ / "occupied", bytes_of("x")); });
  EXPECT_NE(message.find("occupied\" could not be replaced: "), std::string::npos) << message;
  EXPECT_TRUE(fs::exists(directory_ / "occupied" / "inside"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(PlatformFile, ErrorsNameThePathAndTheReason) {
  const fs::path missing = directory_ / "no" / "such";
  const std::string reason = std::strerror(ENOENT);
  for (const auto& action :
       {std::function<void()>([&] { read_file(missing); }),
        std::function<void()>([&] { MappedFile{missing}; }),
        std::function<void()>([&] { write_file_atomically(missing, bytes_of("")); })}) {
    const std::string message = message_of(action);
    EXPECT_NE(message.find(missing.string()), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  }
  EXPECT_NE(message_of([&] { read_file(directory_); }).find(std::strerror(EISDIR)),
            std::string::npos);
  EXPECT_NE(message_of([&] { MappedFile{directory_}; }).find(std::strerror(EISDIR)),
            std::string::npos);
}

TEST_F(PlatformFile, MappingsMove) {
  write_file_atomically(directory_ / "a", bytes_of("mapped"));
  MappedFile first(directory_ / "a");
  MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second.bytes()), "mapped");
  MappedFile third;
  third = std::move(second);
  EXPECT_EQ(text_of(third.bytes()), "mapped");
}

}  // namespace
}  // namespace meganeura
