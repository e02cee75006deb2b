#include "tests/op_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "graph/initialize.h"
#include "graph/values.h"

namespace meganeura {
namespace {

// A permutation of 0 … n − 1: the ranks of random numbers.
std::vector<size_t> permutation(const std::vector<double>& random) {
  std::vector<size_t> order(random.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return random[a] < random[b]; });
  return order;
}

}  // namespace

std::vector<double> sample(const std::string& name, const Shape& shape, DType dtype,
                           const Domain& domain) {
  const std::vector<double> first = initial_value(name, shape, f64, Initializer::uniform(0, 1), 1);
  const std::vector<double> second = initial_value(name, shape, f64, Initializer::uniform(0, 1), 2);
  const std::vector<size_t> ranks = permutation(first);
  const auto whole = [&](size_t i) {
    return domain.low + std::floor(first[i] * (domain.high - domain.low + 1.0));
  };
  std::vector<double> values(first.size());
  for (size_t i = 0; i < values.size(); ++i) {
    switch (domain.kind) {
      case Domain::Kind::kReal:
        values[i] = domain.low + (domain.high - domain.low) * first[i];
        break;
      case Domain::Kind::kNonzero:
        values[i] = domain.low + (domain.high - domain.low) * first[i];
        if (second[i] < 0.5) values[i] = -values[i];
        break;
      case Domain::Kind::kInteger:
        values[i] = whole(i);
        break;
      case Domain::Kind::kFraction:
        values[i] = whole(i) + 0.1 + 0.3 * second[i];
        break;
      case Domain::Kind::kDistinct: {
        const double center = static_cast<double>(values.size() / 2);
        values[i] = domain.low * (static_cast<double>(ranks[i]) - center) + domain.high;
        break;
      }
    }
    values[i] = as_stored(dtype, values[i]);
  }
  return values;
}

LeafValues sample_inputs(const OpCase& op_case, const Graph& graph, int64_t size) {
  LeafValues leaves;
  for (const auto& [name, domain] : op_case.domains) {
    const Tensor leaf = graph.find(name);
    MG_CHECK(leaf, "the case ", op_case.name, " has a domain for \"", name, "\" but no such input");
    leaves[name] = {
        leaf.shape(), leaf.dtype(),
        sample(cat(op_case.name, "/", size, "/", name), leaf.shape(), leaf.dtype(), domain)};
  }
  return leaves;
}

CaseValues as_arrays(const LeafValues& leaves) {
  CaseValues arrays;
  for (const auto& [name, leaf] : leaves) arrays[name] = {leaf.shape, leaf.values};
  return arrays;
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  for (auto part : {elementwise_cases, integer_cases, reduction_cases, movement_cases}) {
    for (OpCase& op_case : part()) cases.push_back(std::move(op_case));
  }
  return cases;
}

}  // namespace meganeura
