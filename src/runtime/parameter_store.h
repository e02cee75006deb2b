// Device memory of persistent tensors.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "meganeura/session.h"

namespace meganeura {

struct Program;
struct ProgramTensor;

struct ParameterStore::Implementation {
  struct Entry {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
    device::Span span;  // storage_bytes of it hold the value; the rest is padding
  };

  Implementation(Device device, uint64_t seed) : device(std::move(device)), seed(seed) {}

  void add(const Program& program);
  // Error(kInvalidArgument) naming what the store holds.
  const Entry& entry(std::string_view name) const;

  Device device;
  uint64_t seed;
  std::vector<Entry> entries;  // in order of addition
  std::map<std::string, size_t, std::less<>> index;
  std::vector<std::unique_ptr<device::Memory>> arenas;

 private:
  // The program's tensors that are not here yet, placed in new arenas.
  struct Addition {
    const ProgramTensor* tensor;
    size_t arena;
    uint64_t offset;
    uint64_t bytes;
  };
  void check_known(const ProgramTensor& tensor) const;
  std::vector<Addition> plan(const Program& program, std::vector<uint64_t>& arena_bytes) const;
  void initialize(const std::vector<Addition>& additions,
                  const std::vector<std::unique_ptr<device::Memory>>& memories) const;
};

}  // namespace meganeura
