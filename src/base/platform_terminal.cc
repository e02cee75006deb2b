#include "base/platform_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace meganeura {

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

int terminal_columns(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace meganeura
