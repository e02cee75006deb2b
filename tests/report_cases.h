// Public bug reports of other engines as small graphs with the values that are right.
//
// Host tests evaluate them with the reference; device tests run the same table.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "meganeura/graph.h"

namespace meganeura {

using Numbers = std::vector<double>;

struct ReportCase {
  std::string name;  // "Pytorch1813_MeanOverTheOnlyAxis"
  std::string link;
  std::function<std::vector<Output>(Graph& graph)> build;
  std::map<std::string, Numbers> values;    // of leaves, by name
  std::map<std::string, Numbers> expected;  // of outputs, by name; the others are only finite
  std::vector<std::string> varied;  // leaves whose gradient of output "loss" meets differences
};

std::vector<ReportCase> report_cases();

// The parts of the table: gradient rules; products; softmax, losses, norms and NaN.
std::vector<ReportCase> gradient_reports();
std::vector<ReportCase> product_reports();
std::vector<ReportCase> loss_and_norm_reports();

// sin(frequency·i + phase) for i < count.
Numbers wave(int64_t count, double frequency = 0.7, double phase = 0.3);
// 0, 1, 2, … times scale.
Numbers ramp(int64_t count, double scale = 1.0);

}  // namespace meganeura
