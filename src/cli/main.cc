// The meganeura program.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "meganeura/error.h"
#include "runtime/environment.h"

namespace {

constexpr int kUserError = 1;

constexpr const char* kFooter =
    "Examples:\n"
    "  meganeura devices                                  what can compute here\n"
    "  meganeura train mnist --out out/mnist              train, plot and save\n"
    "  meganeura eval mnist --checkpoint out/mnist/model.safetensors\n"
    "  meganeura predict mnist --index 7 --checkpoint out/mnist/model.safetensors\n"
    "  meganeura graph mnist --stage kernels              look inside the compiler\n";

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Train and deploy neural networks on any GPU.", "meganeura");
  program.require_subcommand(1);
  program.footer(kFooter);
  program.get_formatter()->column_width(34);
  meganeura::cli::add_devices_command(program);
  meganeura::cli::add_train_command(program);
  meganeura::cli::add_eval_command(program);
  meganeura::cli::add_predict_command(program);
  meganeura::cli::add_graph_command(program);
  meganeura::cli::add_ops_command(program);
  for (const std::string& warning : meganeura::read_environment().warnings) {
    fmt::print(stderr, "warning: {}\n", warning);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error);
  } catch (const meganeura::Error& error) {
    fmt::print(stderr, "error ({}): {}\n", meganeura::to_string(error.kind()), error.what());
    return kUserError;
  }
  return 0;
}
