// Random graphs over every kind of op, for fuzzing the whole compiler.
#pragma once

#include <cstdint>
#include <vector>

#include "meganeura/graph.h"
#include "ops/evaluate/evaluate.h"

namespace meganeura {

struct RandomGraph {
  Graph graph;
  std::vector<Output> outputs;
  LeafValues leaves;
};

// A function of the seed alone: a few inputs and states of small odd shapes, `ops` random ops whose
// values stay bounded, and one to three outputs, some of them assigns.
RandomGraph random_graph(uint64_t seed, int ops);

}  // namespace meganeura
