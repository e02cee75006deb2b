#include "cli/render_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace meganeura::cli {

namespace {

constexpr int kWidestBar = 30;
constexpr int kNarrowestBar = 5;
constexpr double kSecondsBetweenUpdates = 0.1;

// Label, percentage, loss, speed and time left, the most important first.
std::vector<std::string> fields(const Progress& progress) {
  const int64_t percent = progress.total > 0 ? 100 * progress.done / progress.total : 100;
  std::vector<std::string> out;
  if (!progress.label.empty()) out.push_back(progress.label);
  out.push_back(fmt::format("{:3}%", percent));
  out.push_back(fmt::format("loss {:.4f}", progress.loss));
  if (progress.images_per_second > 0.0)
    out.push_back(format_count(static_cast<int64_t>(std::min(progress.images_per_second, 1e15))) +
                  " images/s");
  if (progress.seconds_left >= 0.0) out.push_back(format_seconds(progress.seconds_left) + " left");
  return out;
}

}  // namespace

std::string progress_line(const Progress& progress, const Terminal& terminal) {
  constexpr std::string_view kGap = "  ";
  const int gap = static_cast<int>(kGap.size());
  // The last column stays empty: some terminals wrap when it is written.
  const int columns = std::max(1, terminal.columns - 1);
  std::vector<std::string> parts = fields(progress);
  const auto width = [&] {
    int sum = -gap;
    for (const std::string& part : parts) sum += display_width(part) + gap;
    return sum;
  };
  while (parts.size() > 1 && width() > columns) parts.pop_back();
  const int bar_columns = std::min(kWidestBar, columns - width() - gap);
  if (terminal.interactive && bar_columns >= kNarrowestBar) {
    const double fraction = progress.total > 0 ? static_cast<double>(progress.done) /
                                                     static_cast<double>(progress.total)
                                               : 1.0;
    const size_t place = progress.label.empty() ? 0 : 1;
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(place),
                 bar(fraction, bar_columns, terminal.unicode));
  }
  std::string line;
  for (const std::string& part : parts) {
    if (!line.empty()) line += kGap;
    line += part;
  }
  return clip(line, columns);
}

ProgressPrinter::ProgressPrinter(Terminal terminal, Write write, int64_t plain_every)
    : terminal_(terminal),
      write_(std::move(write)),
      plain_every_(std::max<int64_t>(1, plain_every)) {}

void ProgressPrinter::show(const Progress& progress, double now) {
  const bool last = progress.done >= progress.total;
  if (!terminal_.interactive) {
    if (last || progress.done % plain_every_ == 0)
      write_(progress_line(progress, terminal_) + "\n");
    return;
  }
  if (line_open_ && !last && now - last_shown_ < kSecondsBetweenUpdates) return;
  const std::string line = progress_line(progress, terminal_);
  const int width = display_width(line);
  write_("\r" + pad_right(line, last_width_));
  last_shown_ = now;
  last_width_ = width;
  line_open_ = true;
}

void ProgressPrinter::finish() {
  if (!line_open_) return;
  write_("\n");
  line_open_ = false;
  last_width_ = 0;
}

}  // namespace meganeura::cli
