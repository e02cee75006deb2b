#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "meganeura/device.h"

namespace meganeura::cli {
namespace {

void print_json(const std::vector<DeviceDescription>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DeviceDescription& device : devices) {
    nlohmann::ordered_json details;
    for (const auto& [key, value] : device.details) details[key] = value;
    list.push_back({{"name", device.name},
                    {"driver", device.driver},
                    {"api", device.api},
                    {"usable", device.usable},
                    {"reason", device.reason},
                    {"details", details}});
  }
  fmt::print("{}\n", list.dump(2));
}

void print_text(const std::vector<DeviceDescription>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceDescription& device = devices[i];
    fmt::print("{}{}: {}\n", i == 0 ? "" : "\n", i, device.name);
    fmt::print("   {:<28}{}\n", "api", device.api);
    fmt::print("   {:<28}{}\n", "driver", device.driver);
    fmt::print("   {:<28}{}\n", "usable",
               device.usable ? "yes" : fmt::format("no: {}", device.reason));
    for (const auto& [key, value] : device.details) fmt::print("   {:<28}{}\n", key, value);
  }
}

}  // namespace

void add_device_option(CLI::App& command, CommonOptions& options) {
  command.add_option("--device", options.device,
                     "Index or part of the name as `meganeura devices` prints it, or "
                     "\"interpreter\" (default: $MEGANEURA_DEVICE, else the best GPU)");
}

void add_json_option(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print JSON for machines instead of text");
}

void add_devices_command(CLI::App& program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* command =
      program.add_subcommand("devices", "List what can compute here, its limits and features");
  add_json_option(*command, *options);
  command->callback([options] {
    const std::vector<DeviceDescription> devices = list_devices();
    options->json ? print_json(devices) : print_text(devices);
  });
}

}  // namespace meganeura::cli
