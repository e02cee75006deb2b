#include "base/platform_terminal.h"

#include <gtest/gtest.h>

namespace meganeura {
namespace {

TEST(Terminal, AFileIsNone) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(is_terminal(file));
  EXPECT_EQ(terminal_columns(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace meganeura
