// What a graph owns.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "graph/node.h"

namespace meganeura {

struct GraphState {
  Graph* owner = nullptr;                              // follows the graph when it moves
  std::deque<Node> nodes;                              // references stay valid while it grows
  std::map<std::string, uint32_t, std::less<>> names;  // of the named leaves
  std::optional<Place> place;                          // of the outermost PlaceScope
  uint32_t region = 0;                                 // the innermost recompute region; 0 outside
  uint32_t regions = 0;                                // the highest region id handed out
};

}  // namespace meganeura
