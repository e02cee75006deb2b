// Devices, as users see them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meganeura/export.h"

namespace meganeura {

namespace device {
class Device;
}

struct DeviceOptions {
  // Empty: the environment's MEGANEURA_DEVICE, else the best GPU (lavapipe counts). An index of
  // list_devices(), a part of a device's name, or "interpreter".
  std::string select;
  bool validation = false;  // Vulkan validation layers; Error(kUnsupported) when not installed
  // Bind slots as descriptors instead of addresses; where addresses do not work they are anyway.
  bool descriptors = false;
  // Where compiled pipelines are kept between runs. Empty: the environment's MEGANEURA_CACHE_DIR,
  // else nowhere.
  std::string cache_directory;
};

// What list_devices knows of a device without opening it fully.
struct DeviceDescription {
  std::string name;
  std::string driver;
  std::string api;
  bool usable = false;
  std::string reason;  // why not, naming what is missing
  std::vector<std::pair<std::string, std::string>> details;
};

// A shared handle; destroyed with the last copy and whatever was made from it.
class MEGANEURA_API Device {
 public:
  // Error(kUnsupported) saying what is missing: no loader, no device, a feature by name.
  static Device open(const DeviceOptions& options = {});
  explicit Device(std::shared_ptr<device::Device> implementation);

  const std::string& name() const;
  device::Device& implementation() const { return *implementation_; }
  const std::shared_ptr<device::Device>& share() const { return implementation_; }

 private:
  std::shared_ptr<device::Device> implementation_;
};

// Every Vulkan device, usable or not, and the interpreter.
MEGANEURA_API std::vector<DeviceDescription> list_devices();

}  // namespace meganeura
