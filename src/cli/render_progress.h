// The line that shows how training goes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/render_terminal.h"

namespace meganeura::cli {

struct Progress {
  std::string label;  // such as "epoch 2/5"
  int64_t done = 0;   // steps
  int64_t total = 0;
  double loss = 0.0;
  double images_per_second = 0.0;  // 0 hides it
  double seconds_left = -1.0;      // negative hides it
};

// One line without its end, no wider than the terminal: label, bar, percentage, loss, speed, time
// left. What does not fit is left out from the right, the bar first becoming shorter.
std::string progress_line(const Progress& progress, const Terminal& terminal);

// Shows progress while it changes. On a terminal one line is overwritten, a few times a second; in
// a pipe or a file a plain line is written every `plain_every` steps and for the last one.
class ProgressPrinter {
 public:
  using Write = std::function<void(std::string_view)>;

  ProgressPrinter(Terminal terminal, Write write, int64_t plain_every = 100);
  // `now` is any clock in seconds that does not go backwards.
  void show(const Progress& progress, double now);
  // Ends an overwritten line, so that what is printed next stands below it.
  void finish();

 private:
  Terminal terminal_;
  Write write_;
  int64_t plain_every_;
  double last_shown_ = 0.0;
  int last_width_ = 0;
  bool line_open_ = false;
};

}  // namespace meganeura::cli
