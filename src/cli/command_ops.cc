#include <fmt/format.h>

#include "cli/commands.h"
#include "ops/docs.h"

namespace meganeura::cli {

void add_ops_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("ops", "Print the table of ops in Markdown");
  command->callback([] { fmt::print("{}", ops_markdown()); });
}

}  // namespace meganeura::cli
