#include "meganeura/device.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "device/interpreter/interpreter.h"
#include "device/vulkan/vulkan_device.h"
#include "runtime/environment.h"

namespace meganeura {
namespace {

using device::vulkan::OpenOptions;
using device::vulkan::PhysicalDevice;

constexpr std::string_view kInterpreter = "interpreter";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Vulkan's devices, one without usable addresses as it is with descriptors; none, with the reason,
// where Vulkan is missing.
std::vector<PhysicalDevice> vulkan_devices(OpenOptions options, std::string& why) {
  try {
    std::vector<PhysicalDevice> devices = device::vulkan::list(options);
    const bool all = std::all_of(devices.begin(), devices.end(),
                                 [](const PhysicalDevice& one) { return one.missing.empty(); });
    if (all || options.descriptors) return devices;
    options.descriptors = true;
    std::vector<PhysicalDevice> bound = device::vulkan::list(options);
    for (size_t i = 0; i < devices.size() && i < bound.size(); ++i) {
      if (!devices[i].missing.empty() && bound[i].missing.empty()) {
        devices[i] = std::move(bound[i]);
      }
    }
    return devices;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    why = error.what();
    return {};
  }
}

std::string name_list(const std::vector<PhysicalDevice>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) text += cat(i, ": ", devices[i].info.name, ", ");
  return text + cat(devices.size(), ": ", kInterpreter);
}

// The index into `devices` that the text selects; their number stands for the interpreter.
size_t select(const std::vector<PhysicalDevice>& devices, const std::string& text,
              const std::string& why) {
  const std::string wanted = lower(text);
  if (wanted == kInterpreter) return devices.size();
  size_t index = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
  if (error == std::errc() && end == wanted.data() + wanted.size()) {
    if (index <= devices.size()) return index;
    fail(ErrorKind::kInvalidArgument, "There is no device ", text, "; there are ",
         name_list(devices), ".");
  }
  std::vector<size_t> indices;
  std::vector<PhysicalDevice> matches;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (lower(devices[i].info.name).find(wanted) == std::string::npos) continue;
    indices.push_back(i);
    matches.push_back(devices[i]);
  }
  if (matches.empty()) {
    fail(ErrorKind::kInvalidArgument, "No device's name contains \"", text, "\"; there are ",
         name_list(devices), ".", why.empty() ? "" : " ", why);
  }
  return indices[device::vulkan::best(matches)];
}

}  // namespace

Device::Device(std::shared_ptr<device::Device> implementation)
    : implementation_(std::move(implementation)) {
  if (!implementation_) fail(ErrorKind::kInvalidArgument, "A Device was made of nothing.");
}

const std::string& Device::name() const { return implementation_->info().name; }

Device Device::open(const DeviceOptions& options) {
  const Environment environment = read_environment();
  OpenOptions open;
  open.validation = options.validation || environment.validation;
  open.descriptors = options.descriptors;
  open.cache_directory =
      options.cache_directory.empty() ? environment.cache_directory : options.cache_directory;
  const std::string& wanted = options.select.empty() ? environment.device : options.select;
  if (lower(wanted) == kInterpreter) return Device(device::open_interpreter());

  OpenOptions listing = open;
  listing.validation = false;
  std::string why;
  const std::vector<PhysicalDevice> devices = vulkan_devices(listing, why);
  if (wanted.empty() && !why.empty()) throw Error(ErrorKind::kUnsupported, why);
  const size_t index =
      wanted.empty() ? device::vulkan::best(devices) : select(devices, wanted, why);
  if (index == devices.size()) return Device(device::open_interpreter());
  open.descriptors = devices[index].capabilities.binding == BindingMode::kDescriptor;
  return Device(device::vulkan::open(index, open));
}

std::vector<DeviceDescription> list_devices() {
  std::vector<DeviceDescription> descriptions;
  std::string why;
  for (PhysicalDevice& physical : vulkan_devices({}, why)) {
    DeviceDescription description;
    description.name = physical.info.name;
    description.driver = physical.info.driver;
    description.api = physical.info.api;
    description.usable = physical.missing.empty();
    if (!description.usable) {
      description.reason = cat("It lacks ", device::vulkan::missing_text(physical), ".");
    }
    description.details = std::move(physical.info.details);
    descriptions.push_back(std::move(description));
  }
  const std::shared_ptr<device::Device> interpreter = device::open_interpreter();
  const device::DeviceInfo& info = interpreter->info();
  descriptions.push_back({info.name, info.driver, info.api, true, why, info.details});
  return descriptions;
}

}  // namespace meganeura
