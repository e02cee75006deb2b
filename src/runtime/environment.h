// The one place that reads environment variables.
#pragma once

#include <string>
#include <vector>

namespace meganeura {

struct Environment {
  std::string device;           // MEGANEURA_DEVICE: DeviceOptions::select
  std::string cache_directory;  // MEGANEURA_CACHE_DIR: DeviceOptions::cache_directory
  bool validation = false;      // MEGANEURA_VALIDATION: 1 or 0
  // One sentence per variable that begins with MEGANEURA_ and is unknown or has a bad value.
  std::vector<std::string> warnings;
};

// What the process's environment says now.
Environment read_environment();

// The same of "NAME=value" texts, in their order.
Environment parse_environment(const std::vector<std::string>& variables);

}  // namespace meganeura
