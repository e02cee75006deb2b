// A deployment: no compiler is linked, so nothing here may need one.
#include <meganeura/device.h>
#include <meganeura/error.h>
#include <meganeura/session.h>

#include <cstdio>

namespace mg = meganeura;

int main() {
  for (const mg::DeviceDescription& device : mg::list_devices())
    std::printf("%s: %s\n", device.name.c_str(), device.usable ? "usable" : device.reason.c_str());
  const mg::Device device = mg::Device::open({.select = "interpreter"});
  const mg::ParameterStore store(device);
  return store.bytes() == 0 && store.names().empty() ? 0 : 1;
}
