// Whole programs under the Vulkan validation layers, in both binding modes.
#include <gtest/gtest.h>

#include "base/format.h"
#include "device/vulkan/vulkan_device.h"
#include "meganeura/error.h"
#include "tests/op_cases.h"
#include "tests/random_graph.h"
#include "tests/run_graph.h"

namespace meganeura {
namespace {

// Descriptor mode adds synchronisation validation.
class Validated : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    DeviceOptions options;
    options.validation = true;
    options.descriptors = GetParam();
    try {
      device_ = std::make_unique<Device>(Device::open(options));
    } catch (const Error& error) {
      GTEST_SKIP() << "No Vulkan device with validation layers: " << error.what();
    }
    vulkan_ = dynamic_cast<device::vulkan::VulkanDevice*>(&device_->implementation());
    if (vulkan_ == nullptr) GTEST_SKIP() << device_->name() << " is no Vulkan device.";
  }

  void expect_clean() const {
    for (const std::string& message : vulkan_->validation_messages()) ADD_FAILURE() << message;
  }

  std::unique_ptr<Device> device_;
  device::vulkan::VulkanDevice* vulkan_ = nullptr;
};

TEST_P(Validated, RandomGraphsRunWithoutAMessage) {
  for (uint64_t seed = 200; seed < 215; ++seed) {
    const RandomGraph random = random_graph(seed, 10);
    run_graph(*device_, random.outputs, random.leaves);
  }
  expect_clean();
}

TEST_P(Validated, OpCasesRunWithoutAMessage) {
  constexpr int64_t kSize = 15;
  std::string last_row;
  for (const OpCase& op_case : op_cases()) {
    if (op_case.row == last_row) continue;  // one case of each row
    last_row = op_case.row;
    Graph graph;
    const Output output{"output", op_case.build(graph, kSize)};
    run_graph(*device_, std::span(&output, 1), sample_inputs(op_case, graph, kSize));
  }
  expect_clean();
}

INSTANTIATE_TEST_SUITE_P(Modes, Validated, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Descriptors" : "Addresses";
                         });

}  // namespace
}  // namespace meganeura
