#include "cli/render_progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace meganeura::cli {
namespace {

const Progress kHalf{"epoch 1/2", 50, 100, 0.25, 12345.6, 75.0};

Terminal interactive(int columns) { return {true, false, true, columns}; }

TEST(ProgressLine, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(progress_line(kHalf, interactive(120)),
            "epoch 1/2  ███████████████                  50%  loss 0.2500  12,345 images/s  "
            "1:15 left");
}

TEST(ProgressLine, IsPlainInAPipe) {
  EXPECT_EQ(progress_line(kHalf, Terminal{}),
            "epoch 1/2   50%  loss 0.2500  12,345 images/s  1:15 left");
}

TEST(ProgressLine, NeverReachesTheLastColumn) {
  for (int columns = 1; columns < 130; ++columns) {
    const std::string line = progress_line(kHalf, interactive(columns));
    EXPECT_LE(display_width(line), std::max(1, columns - 1)) << columns;
  }
  EXPECT_EQ(progress_line(kHalf, interactive(40)), "epoch 1/2  ████▌       50%  loss 0.2500");
}

TEST(ProgressLine, HidesWhatIsUnknown) {
  const Progress progress{"", 0, 0, std::nan(""), 0.0, -1.0};
  EXPECT_EQ(progress_line(progress, Terminal{}), "100%  loss nan");
}

class Sink {
 public:
  ProgressPrinter::Write write() {
    return [this](std::string_view text) { text_ += text; };
  }
  std::string text_;
};

TEST(ProgressPrinter, WritesLinesEverySoOftenInAPipe) {
  Sink sink;
  ProgressPrinter printer(Terminal{}, sink.write(), 10);
  for (int step = 1; step <= 25; ++step) printer.show({"", step, 25, 1.0}, step * 1.0);
  printer.finish();
  EXPECT_EQ(sink.text_, " 40%  loss 1.0000\n 80%  loss 1.0000\n100%  loss 1.0000\n");
  EXPECT_EQ(sink.text_.find('\r'), std::string::npos);
  EXPECT_EQ(sink.text_.find('\x1b'), std::string::npos);
}

TEST(ProgressPrinter, OverwritesOneLineOnATerminal) {
  Sink sink;
  ProgressPrinter printer(interactive(20), sink.write());
  printer.show({"a long label", 1, 4, 1.0}, 0.0);
  printer.show({"a long label", 2, 4, 1.0}, 0.05);  // too soon
  printer.show({"short", 3, 4, 1.0}, 0.2);
  printer.show({"short", 4, 4, 1.0}, 0.21);  // the last one is always shown
  printer.finish();
  printer.finish();
  // A shorter line is padded over the longer one before it.
  EXPECT_EQ(sink.text_, "\ra long label   25%\rshort  ████▌    75%\rshort  ██████  100%\n");
}

}  // namespace
}  // namespace meganeura::cli
