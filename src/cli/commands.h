// The subcommands; each adds itself to the program and runs from a callback.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace meganeura::cli {

// What every subcommand understands.
struct CommonOptions {
  std::string device;
  bool json = false;
};

void add_device_option(CLI::App& command, CommonOptions& options);
void add_json_option(CLI::App& command, CommonOptions& options);

void add_devices_command(CLI::App& program);
void add_train_command(CLI::App& program);
void add_eval_command(CLI::App& program);
void add_predict_command(CLI::App& program);
void add_graph_command(CLI::App& program);
void add_ops_command(CLI::App& program);

}  // namespace meganeura::cli
