// Runs a graph on a device and brings the outputs back as doubles.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "meganeura/compile.h"
#include "meganeura/device.h"
#include "meganeura/graph.h"
#include "ops/evaluate/evaluate.h"

namespace meganeura {

// The devices that tests run on: the one that the environment's MEGANEURA_DEVICE selects; without
// it the interpreter and every usable Vulkan device.
std::vector<Device> test_devices();

// Compiles the outputs, sets every leaf by name (leaves the graph does not use are passed over) and
// runs one step. Outputs that are assigns come back as the leaf's new value.
std::vector<std::vector<double>> run_graph(const Device& device, std::span<const Output> outputs,
                                           const LeafValues& leaves,
                                           const CompileOptions& options = {});

}  // namespace meganeura
