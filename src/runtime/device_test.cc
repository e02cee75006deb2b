#include "meganeura/device.h"

#include <cstdlib>
#include <filesystem>

#include "device/device.h"
#include "runtime/environment.h"
#include "runtime/test_support.h"

namespace meganeura {
namespace {

TEST(Environment, ReadsItsVariablesAndWarnsOfOthers) {
  const Environment environment = parse_environment(
      {"PATH=/bin", "MEGANEURA_DEVICE=llvm=pipe", "MEGANEURA_CACHE_DIR=/tmp/x",
       "MEGANEURA_VALIDATION=1", "MEGANEURA_DEVISE=0", "MEGANEURA_X", "MY_MEGANEURA_DEVICE=3"});
  EXPECT_EQ(environment.device, "llvm=pipe");
  EXPECT_EQ(environment.cache_directory, "/tmp/x");
  EXPECT_TRUE(environment.validation);
  ASSERT_EQ(environment.warnings.size(), 2u);
  EXPECT_NE(environment.warnings[0].find("MEGANEURA_DEVISE is unknown"), std::string::npos);
  EXPECT_NE(environment.warnings[0].find("MEGANEURA_CACHE_DIR"), std::string::npos);
  EXPECT_NE(environment.warnings[1].find("MEGANEURA_X"), std::string::npos);
}

TEST(Environment, WarnsOfABadValueAndIgnoresIt) {
  const Environment environment = parse_environment({"MEGANEURA_VALIDATION=yes"});
  EXPECT_FALSE(environment.validation);
  ASSERT_EQ(environment.warnings.size(), 1u);
  EXPECT_NE(environment.warnings[0].find("\"yes\""), std::string::npos);
  EXPECT_NE(environment.warnings[0].find("0 or 1"), std::string::npos);
  EXPECT_TRUE(parse_environment({}).warnings.empty());
}

class SelectionTest : public testing::Test {
 protected:
  void SetUp() override { unsetenv("MEGANEURA_DEVICE"); }
  void TearDown() override { unsetenv("MEGANEURA_DEVICE"); }
};

TEST_F(SelectionTest, TheOptionOrTheEnvironmentSelectsTheInterpreter) {
  const Device device = Device::open({.select = "Interpreter"});
  EXPECT_EQ(device.implementation().code(), CodeKind::kKernelText);
  setenv("MEGANEURA_DEVICE", "interpreter", 1);
  EXPECT_EQ(Device::open().implementation().code(), CodeKind::kKernelText);
  EXPECT_EQ(read_environment().device, "interpreter");
}

TEST_F(SelectionTest, ListsEveryDeviceAndOpensThemByIndexAndName) {
  const std::vector<DeviceDescription> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_TRUE(devices.back().usable);
  EXPECT_EQ(Device::open({.select = std::to_string(devices.size() - 1)}).name(),
            devices.back().name);
  for (size_t i = 0; i + 1 < devices.size(); ++i) {
    if (!devices[i].usable) {
      EXPECT_FALSE(devices[i].reason.empty());
      EXPECT_THROW(Device::open({.select = std::to_string(i)}), Error);
      continue;
    }
    EXPECT_EQ(Device::open({.select = std::to_string(i)}).name(), devices[i].name);
    EXPECT_FALSE(devices[i].details.empty());
    EXPECT_FALSE(devices[i].driver.empty());
  }
}

TEST_F(SelectionTest, OpensTheBestDeviceByDefault) {
  std::string why;
  const auto expected = test_device("descriptors", why);
  if (!expected) {
    EXPECT_EQ(error_of([] { Device::open(); }).kind(), ErrorKind::kUnsupported);
    GTEST_SKIP() << "No usable Vulkan device: " << why;
  }
  const Device device = Device::open();
  EXPECT_EQ(device.name(), expected->info().name);
  std::string part = device.name().substr(0, 5);
  for (char& c : part) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(Device::open({.select = part}).name(), device.name());
  const Device bound = Device::open({.descriptors = true});
  EXPECT_EQ(bound.implementation().capabilities().binding, BindingMode::kDescriptor);
}

TEST_F(SelectionTest, NamesTheDevicesThereAreWhenNoneMatches) {
  const Error name = error_of([] { Device::open({.select = "Quantum 9000"}); });
  EXPECT_EQ(name.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(name, "Quantum 9000")) << name.what();
  EXPECT_TRUE(mentions(name, ": interpreter")) << name.what();
  const Error index = error_of([] { Device::open({.select = "77"}); });
  EXPECT_EQ(index.kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(mentions(index, "no device 77")) << index.what();
}

TEST_F(SelectionTest, KeepsPipelinesInTheCacheDirectory) {
  const auto directory = std::filesystem::temp_directory_path() / "meganeura_device_cache";
  std::filesystem::remove_all(directory);
  std::string why;
  if (!test_device("descriptors", why)) GTEST_SKIP() << "No usable Vulkan device: " << why;
  Device::open({.cache_directory = directory.string()});
  EXPECT_FALSE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace meganeura
