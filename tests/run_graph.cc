#include "tests/run_graph.h"

#include "graph/node.h"
#include "graph/values.h"
#include "meganeura/session.h"
#include "program/program.h"
#include "runtime/environment.h"

namespace meganeura {

std::vector<Device> test_devices() {
  std::vector<Device> devices;
  if (!read_environment().device.empty()) {
    devices.push_back(Device::open());
    return devices;
  }
  devices.push_back(Device::open({.select = "interpreter"}));
  for (const DeviceDescription& description : list_devices()) {
    if (description.usable && description.name != devices[0].name()) {
      devices.push_back(Device::open({.select = description.name}));
    }
  }
  return devices;
}

std::vector<std::vector<double>> run_graph(const Device& device, std::span<const Output> outputs,
                                           const LeafValues& leaves,
                                           const CompileOptions& options) {
  const SegmentOutputs segment{"run", {outputs.begin(), outputs.end()}};
  const auto program = compile({&segment, 1}, device, options);
  ParameterStore store(device);
  Session session(device, *program, store);
  for (const auto& [name, value] : leaves) {
    const ProgramTensor* tensor = program->find(name);
    if (tensor == nullptr) continue;
    const std::vector<std::byte> bytes = encode_values(value.dtype, value.values);
    const TensorView view(bytes.data(), value.dtype, value.shape);
    if (tensor->kind == TensorKind::kInput) {
      session.set(name, view);
    } else {
      store.write(name, view);
    }
  }
  const RunHandle run = session.run();
  run.wait();
  std::vector<std::vector<double>> results;
  for (const Output& output : outputs) {
    const bool assign = output.tensor.node().row->lowering == Lowering::kAssign;
    const HostTensor value = assign ? store.read(leaf_name(output.tensor.node().operands[0].node()))
                                    : run.output(output.name);
    results.push_back(decode_values(value.dtype, value.bytes));
  }
  return results;
}

}  // namespace meganeura
