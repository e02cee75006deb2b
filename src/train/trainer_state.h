// What a trainer holds; shared by stepping and by checkpoints.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "meganeura/trainer.h"

namespace meganeura {

struct Trainer::Implementation {
  Device device;
  Graph* graph = nullptr;
  TrainerOptions options;
  std::vector<Tensor> parameters;
  std::shared_ptr<const Program> program;
  CompileReport report;
  ParameterStore store;
  std::unique_ptr<Session> session;
  uint64_t updates = 0;
  uint64_t micro_batches = 0;

  Implementation(Device opened, TrainerOptions chosen)
      : device(opened), options(std::move(chosen)), store(opened, options.seed) {}
};

// The optimizer and its hyperparameters that resuming must not change, as checkpoint text:
// "adamw(beta1=0.9, …)". Learning rate and schedule may differ.
std::string describe_optimizer(const TrainerOptions& options);

}  // namespace meganeura
