#include "device/interpreter/interpreter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "kernel_ir/builder.h"

namespace meganeura::device {
namespace {

using kir::Builder;
using kir::Builtin;
using kir::Kernel;
using kir::Opcode;
using kir::SlotAccess;
using kir::Value;
using scalar::Op;
using scalar::Type;

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& data) {
  return std::as_writable_bytes(std::span(data));
}

using Grid = std::array<uint32_t, 3>;

// index = workgroup_x · local size + local_index.
Value global_index(Builder& b, uint32_t local) {
  Value group = b.builtin(Builtin::kWorkgroupX);
  Value base = b.mul(group, b.u32(local));
  return b.add(base, b.builtin(Builtin::kLocalIndex));
}

// out[i] = body(b, i) for local invocations of one workgroup.
std::vector<uint32_t> run_one(uint32_t local, const std::function<Value(Builder&, Value)>& body,
                              const RunOptions& options = {},
                              std::span<const uint32_t> params = {}) {
  Builder b("one", {local, 1, 1});
  uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
  for (size_t i = 0; i < params.size(); ++i) b.param();
  Value index = b.builtin(Builtin::kLocalIndex);
  Value result = body(b, index);
  b.store(out, index, result);
  std::vector<uint32_t> data(local, 0xdeadbeef);
  std::array slots = {bytes_of(data)};
  run_kernel(b.finish(), {1, 1, 1}, slots, params, options);
  return data;
}

TEST(Interpreter, GuardedPointwiseOverOddSizes) {
  for (uint32_t size : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    Builder b("axpy", {64, 1, 1});
    uint32_t x = b.slot("x", Type::kF32, SlotAccess::kRead);
    uint32_t y = b.slot("y", Type::kF32, SlotAccess::kReadWrite);
    Value count = b.read_param(b.param());
    Value index = global_index(b, 64);
    b.if_then(b.less(index, count), [&] {
      Value scaled = b.mul(b.load(x, index), b.f32(1.5f));
      b.store(y, index, b.add(scaled, b.load(y, index)));
    });
    std::vector<float> xs(size), ys(size), expected(size);
    for (uint32_t i = 0; i < size; ++i) {
      xs[i] = static_cast<float>(i) * 0.37f;
      ys[i] = 1.0f / static_cast<float>(i + 1);
      expected[i] = xs[i] * 1.5f + ys[i];
    }
    std::array slots = {bytes_of(xs), bytes_of(ys)};
    run_kernel(b.finish(), {(size + 63) / 64, 1, 1}, slots, std::array{size});
    EXPECT_EQ(ys, expected);
  }
}

TEST(Interpreter, WorkgroupIdsCoverTheGrid) {
  Builder b("ids", {2, 1, 1});
  uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
  Value x = b.builtin(Builtin::kWorkgroupX);
  Value y = b.builtin(Builtin::kWorkgroupY);
  Value z = b.builtin(Builtin::kWorkgroupZ);
  Value row = b.add(b.mul(z, b.u32(3)), y);
  Value group = b.add(b.mul(row, b.u32(4)), x);
  Value index = b.add(b.mul(group, b.u32(2)), b.builtin(Builtin::kLocalIndex));
  Value code = b.add(b.add(x, b.mul(y, b.u32(10))), b.mul(z, b.u32(100)));
  b.store(out, index, code);
  std::vector<uint32_t> data(4 * 3 * 2 * 2);
  std::array slots = {bytes_of(data)};
  run_kernel(b.finish(), {4, 3, 2}, slots, {});
  for (uint32_t i = 0; i < data.size(); ++i) {
    uint32_t group_index = i / 2;
    EXPECT_EQ(data[i], group_index % 4 + group_index / 4 % 3 * 10 + group_index / 12 * 100);
  }
}

TEST(Interpreter, LocalIndexIsFlatAndLanesFollowIt) {
  Builder b("lanes", {4, 3, 2});
  uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
  Value index = b.builtin(Builtin::kLocalIndex);
  Value lane = b.builtin(Builtin::kLane);
  Value subgroup = b.builtin(Builtin::kSubgroup);
  Value size = b.builtin(Builtin::kSubgroupSize);
  Value code = b.add(b.add(lane, b.mul(subgroup, b.u32(100))), b.mul(size, b.u32(10000)));
  b.store(out, index, code);
  std::vector<uint32_t> data(24);
  std::array slots = {bytes_of(data)};
  run_kernel(b.finish(), {1, 1, 1}, slots, {}, {.subgroup_size = 4});
  for (uint32_t i = 0; i < 24; ++i) EXPECT_EQ(data[i], i % 4 + i / 4 * 100 + 40000);
}

TEST(Interpreter, ReversesThroughSharedMemory) {
  constexpr uint32_t kLocal = 32;
  Builder b("reverse", {kLocal, 1, 1});
  uint32_t data = b.slot("data", Type::kF32, SlotAccess::kReadWrite);
  uint32_t tile = b.shared("tile", Type::kF32, kLocal);
  Value local = b.builtin(Builtin::kLocalIndex);
  Value index = global_index(b, kLocal);
  b.shared_store(tile, local, b.load(data, index));
  b.barrier();
  b.store(data, index, b.shared_load(tile, b.sub(b.u32(kLocal - 1), local)));
  std::vector<float> values(3 * kLocal), expected(3 * kLocal);
  std::iota(values.begin(), values.end(), 0.0f);
  for (uint32_t i = 0; i < expected.size(); ++i) {
    expected[i] = values[i / kLocal * kLocal + kLocal - 1 - i % kLocal];
  }
  std::array slots = {bytes_of(values)};
  run_kernel(b.finish(), {3, 1, 1}, slots, {});
  EXPECT_EQ(values, expected);
}

TEST(Interpreter, SharedTreeReductionInALoop) {
  constexpr uint32_t kLocal = 64;
  Builder b("sum", {kLocal, 1, 1});
  uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
  uint32_t tile = b.shared("tile", Type::kU32, kLocal);
  Value local = b.builtin(Builtin::kLocalIndex);
  b.shared_store(tile, local, b.mul(local, local));
  Value half = b.u32(kLocal / 2);
  b.for_range(b.u32(0), b.u32(6), b.u32(1), std::array{half},
              [&](Value, std::span<const Value> carried) {
                Value stride = carried[0];
                b.barrier();
                b.if_then(b.less(local, stride), [&] {
                  Value other = b.shared_load(tile, b.add(local, stride));
                  b.shared_store(tile, local, b.add(b.shared_load(tile, local), other));
                });
                return std::vector{b.arith(Op::kShr, std::array{stride, b.u32(1)}, Type::kU32)};
              });
  b.if_then(b.equal(local, b.u32(0)), [&] { b.store(out, local, b.shared_load(tile, local)); });
  std::vector<uint32_t> data(1);
  std::array slots = {bytes_of(data)};
  run_kernel(b.finish(), {1, 1, 1}, slots, {});
  EXPECT_EQ(data[0], 63u * 64u * 127u / 6u);
}

TEST(Interpreter, SubgroupOperationsAtEverySize) {
  for (uint32_t size : {1u, 4u, 8u, 16u, 32u, 64u, 128u}) {
    RunOptions options{.subgroup_size = size};
    for (uint32_t mask = 1; mask < size; mask *= 2) {
      auto shuffled = run_one(
          128, [&](Builder& b, Value i) { return b.subgroup_shuffle_xor(i, mask); }, options);
      for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(shuffled[i], i ^ mask);
    }
    auto sums = run_one(
        128, [](Builder& b, Value i) { return b.subgroup_reduce(Opcode::kSubgroupAdd, i); },
        options);
    auto lows = run_one(
        128, [](Builder& b, Value i) { return b.subgroup_reduce(Opcode::kSubgroupMin, i); },
        options);
    auto highs = run_one(
        128, [](Builder& b, Value i) { return b.subgroup_reduce(Opcode::kSubgroupMax, i); },
        options);
    auto last = run_one(
        128, [&](Builder& b, Value i) { return b.subgroup_broadcast(i, size - 1); }, options);
    for (uint32_t i = 0; i < 128; ++i) {
      uint32_t first = i / size * size;
      EXPECT_EQ(sums[i], size * first + size * (size - 1) / 2);
      EXPECT_EQ(lows[i], first);
      EXPECT_EQ(highs[i], first + size - 1);
      EXPECT_EQ(last[i], first + size - 1);
    }
  }
}

TEST(Interpreter, AKernelsSubgroupSizeWins) {
  Builder b("sized", {32, 1, 1}, 16);
  uint32_t out = b.slot("out", Type::kU32, SlotAccess::kWrite);
  b.store(out, b.builtin(Builtin::kLocalIndex), b.builtin(Builtin::kSubgroupSize));
  std::vector<uint32_t> data(32);
  std::array slots = {bytes_of(data)};
  run_kernel(b.finish(), {1, 1, 1}, slots, {}, {.subgroup_size = 4});
  EXPECT_EQ(data, std::vector<uint32_t>(32, 16));
}

TEST(Interpreter, SubgroupReductionOfSignedValuesAndPartialSubgroups) {
  auto lows = run_one(12,
                      [](Builder& b, Value i) {
                        Value value =
                            b.sub(b.arith(Op::kConvert, std::array{i}, Type::kI32), b.i32(6));
                        Value low = b.subgroup_reduce(Opcode::kSubgroupMin, value);
                        return b.arith(Op::kBitcast, std::array{low}, Type::kU32);
                      },
                      {.subgroup_size = 8});
  for (uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(static_cast<int32_t>(lows[i]), i < 8 ? -6 : 2);
  }
}

TEST(Interpreter, LoopsWithBoundsOfEachInvocation) {
  // Sum of 0..i-1 in steps of the argument; carried values cross over (Fibonacci beside it).
  auto result = run_one(
      20,
      [](Builder& b, Value i) {
        Value step = b.read_param(0);
        std::vector<Value> carried =
            b.for_range(b.u32(0), i, step, std::array{b.u32(0), b.u32(0), b.u32(1)},
                        [&](Value k, std::span<const Value> c) {
                          return std::vector{b.add(c[0], k), c[2], b.add(c[1], c[2])};
                        });
        return b.add(b.mul(carried[0], b.u32(10000)), carried[1]);
      },
      {}, std::array{2u});
  for (uint32_t i = 0; i < 20; ++i) {
    uint32_t sum = 0, a = 0, c = 1;
    for (uint32_t k = 0; k < i; k += 2) {
      sum += k;
      uint32_t next = a + c;
      a = c;
      c = next;
    }
    EXPECT_EQ(result[i], sum * 10000 + a) << i;
  }
}

TEST(Interpreter, NestedLoopsAndBranchesKeepInactiveValues) {
  auto result = run_one(16, [](Builder& b, Value i) {
    std::vector<Value> total = b.for_range(
        b.u32(0), i, b.u32(1), std::array{b.u32(0)}, [&](Value k, std::span<const Value> c) {
          Value odd = b.equal(b.rem(b.add(k, i), b.u32(2)), b.u32(1));
          return b.if_else(
              odd,
              [&] {
                return b.for_range(b.u32(0), k, b.u32(1), std::array{c[0]},
                                   [&](Value, std::span<const Value> inner) {
                                     return std::vector{b.add(inner[0], b.u32(3))};
                                   });
              },
              [&] { return std::vector{b.add(c[0], k)}; });
        });
    return total[0];
  });
  for (uint32_t i = 0; i < 16; ++i) {
    uint32_t total = 0;
    for (uint32_t k = 0; k < i; ++k) total += (k + i) % 2 == 1 ? 3 * k : k;
    EXPECT_EQ(result[i], total) << i;
  }
}

TEST(Interpreter, VectorsLoadComputeAndStore) {
  Builder b("vectors", {8, 1, 1});
  uint32_t in = b.slot("in", Type::kF32, SlotAccess::kRead);
  uint32_t out = b.slot("out", Type::kF32, SlotAccess::kWrite);
  uint32_t tile = b.shared("tile", Type::kF32, 32);
  Value index = b.mul(b.builtin(Builtin::kLocalIndex), b.u32(4));
  Value four = b.load(in, index, 4);
  Value zero = b.splat(b.f32(0), 4);
  Value negative = b.less(four, zero);
  Value clipped = b.select(negative, zero, four);
  b.shared_store(tile, index, clipped);
  Value again = b.shared_load(tile, index, 4);
  Value swapped = b.compose(std::array{b.extract(again, 3), b.extract(again, 2),
                                       b.extract(again, 1), b.extract(again, 0)});
  b.store(out, index, swapped);
  std::vector<float> xs(32), ys(32), expected(32);
  for (int i = 0; i < 32; ++i) xs[i] = static_cast<float>(i % 5 - 2) * static_cast<float>(i);
  for (int i = 0; i < 32; ++i) expected[i] = std::max(xs[i / 4 * 4 + 3 - i % 4], 0.0f);
  std::array slots = {bytes_of(xs), bytes_of(ys)};
  run_kernel(b.finish(), {1, 1, 1}, slots, {});
  EXPECT_EQ(ys, expected);
}

TEST(Interpreter, FmaRoundsOnceOrTwice) {
  float x = 1.0f + 0x1p-12f;
  float c = -(1.0f + 0x1p-11f);
  for (bool fused : {true, false}) {
    Builder b("fma", {1, 1, 1});
    uint32_t data = b.slot("data", Type::kF32, SlotAccess::kReadWrite);
    Value value = b.load(data, b.u32(0));
    b.store(data, b.u32(1), b.fma(value, value, b.f32(c)));
    std::vector<float> values = {x, 0};
    std::array slots = {bytes_of(values)};
    run_kernel(b.finish(), {1, 1, 1}, slots, {}, {.fused_fma = fused});
    EXPECT_EQ(values[1], fused ? 0x1p-24f : 0.0f);
  }
}

TEST(Interpreter, RunsTextAsWellAsBuiltKernels) {
  Kernel kernel = kir::parse_kernel(
      "kernel \"fill\" local(4, 1, 1) subgroup(0) params(1) {\n"
      "  slot 0 \"out\": u32 write\n"
      "  %1: u32 = builtin local_index\n"
      "  %2: u32 = param 0\n"
      "  %3: u32 = arith mul %1 %2\n"
      "  store 0 %1 %3\n"
      "}\n");
  std::vector<uint32_t> data(4);
  std::array slots = {bytes_of(data)};
  run_kernel(kernel, {1, 1, 1}, slots, std::array{7u});
  EXPECT_EQ(data, (std::vector<uint32_t>{0, 7, 14, 21}));
}

struct Matrices {
  uint32_t m, n, k;
  std::vector<float> a, b, c, expected;

  Matrices(uint32_t rows, uint32_t columns, uint32_t depth)
      : m(rows), n(columns), k(depth), a(m * k), b(k * n), c(m * n), expected(m * n) {
    uint32_t state = 1;
    auto random = [&] {
      state = state * 1664525u + 1013904223u;
      return static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    };
    for (float& value : a) value = random();
    for (float& value : b) value = random();
    for (uint32_t i = 0; i < m; ++i) {
      for (uint32_t j = 0; j < n; ++j) {
        float sum = 0;
        for (uint32_t p = 0; p < k; ++p) sum = sum + a[i * k + p] * b[p * n + j];
        expected[i * n + j] = sum;
      }
    }
  }

  void run(const Kernel& kernel, Grid grid) {
    std::array slots = {bytes_of(a), bytes_of(b), bytes_of(c)};
    run_kernel(kernel, grid, slots, std::array{m, n, k});
  }
};

TEST(Interpreter, NaiveMatmulEqualsTheHostLoop) {
  for (auto [m, n, k] : {std::array{1u, 1u, 1u}, {5u, 7u, 3u}, {17u, 9u, 33u}, {4u, 4u, 0u}}) {
    Builder b("naive", {8, 8, 1});
    uint32_t x = b.slot("a", Type::kF32, SlotAccess::kRead);
    uint32_t y = b.slot("b", Type::kF32, SlotAccess::kRead);
    uint32_t z = b.slot("c", Type::kF32, SlotAccess::kWrite);
    Value rows = b.read_param(b.param());
    Value columns = b.read_param(b.param());
    Value depth = b.read_param(b.param());
    Value local = b.builtin(Builtin::kLocalIndex);
    Value column = b.add(b.mul(b.builtin(Builtin::kWorkgroupX), b.u32(8)), b.rem(local, b.u32(8)));
    Value row = b.add(b.mul(b.builtin(Builtin::kWorkgroupY), b.u32(8)), b.div(local, b.u32(8)));
    Value inside = b.logical_and(b.less(row, rows), b.less(column, columns));
    b.if_then(inside, [&] {
      std::vector<Value> sum =
          b.for_range(b.u32(0), depth, b.u32(1), std::array{b.f32(0)},
                      [&](Value p, std::span<const Value> carried) {
                        Value left = b.load(x, b.add(b.mul(row, depth), p));
                        Value right = b.load(y, b.add(b.mul(p, columns), column));
                        return std::vector{b.add(carried[0], b.mul(left, right))};
                      });
      b.store(z, b.add(b.mul(row, columns), column), sum[0]);
    });
    Matrices matrices(m, n, k);
    matrices.run(b.finish(), {(n + 7) / 8, (m + 7) / 8, 1});
    EXPECT_EQ(matrices.c, matrices.expected);
  }
}

// 16×16 tiles staged in shared memory, zero outside; the sum runs in the order of k.
Kernel tiled_matmul() {
  constexpr uint32_t kTile = 16;
  Builder b("tiled", {kTile, kTile, 1});
  uint32_t x = b.slot("a", Type::kF32, SlotAccess::kRead);
  uint32_t y = b.slot("b", Type::kF32, SlotAccess::kRead);
  uint32_t z = b.slot("c", Type::kF32, SlotAccess::kWrite);
  uint32_t left_tile = b.shared("left", Type::kF32, kTile * kTile);
  uint32_t right_tile = b.shared("right", Type::kF32, kTile * kTile);
  Value rows = b.read_param(b.param());
  Value columns = b.read_param(b.param());
  Value depth = b.read_param(b.param());
  Value local = b.builtin(Builtin::kLocalIndex);
  Value width = b.u32(kTile);
  Value tx = b.rem(local, width);
  Value ty = b.div(local, width);
  Value column = b.add(b.mul(b.builtin(Builtin::kWorkgroupX), width), tx);
  Value row = b.add(b.mul(b.builtin(Builtin::kWorkgroupY), width), ty);
  auto guarded = [&](Value condition, uint32_t slot, Value index) {
    return b.if_else(
        condition, [&] { return std::vector{b.load(slot, index)}; },
        [&] { return std::vector{b.f32(0)}; })[0];
  };
  std::vector<Value> sum =
      b.for_range(b.u32(0), depth, width, std::array{b.f32(0)},
                  [&](Value start, std::span<const Value> carried) {
                    Value p = b.add(start, tx);
                    Value q = b.add(start, ty);
                    Value left_inside = b.logical_and(b.less(row, rows), b.less(p, depth));
                    Value left = guarded(left_inside, x, b.add(b.mul(row, depth), p));
                    Value right_inside = b.logical_and(b.less(q, depth), b.less(column, columns));
                    Value right = guarded(right_inside, y, b.add(b.mul(q, columns), column));
                    b.shared_store(left_tile, local, left);
                    b.shared_store(right_tile, local, right);
                    b.barrier();
                    std::vector<Value> inner = b.for_range(
                        b.u32(0), width, b.u32(1), std::array{carried[0]},
                        [&](Value i, std::span<const Value> total) {
                          Value l = b.shared_load(left_tile, b.add(b.mul(ty, width), i));
                          Value r = b.shared_load(right_tile, b.add(b.mul(i, width), tx));
                          return std::vector{b.add(total[0], b.mul(l, r))};
                        });
                    b.barrier();
                    return inner;
                  });
  Value inside = b.logical_and(b.less(row, rows), b.less(column, columns));
  b.if_then(inside, [&] { b.store(z, b.add(b.mul(row, columns), column), sum[0]); });
  return b.finish();
}

TEST(Interpreter, TiledMatmulEqualsTheHostLoop) {
  for (auto [m, n, k] : {std::array{1u, 1u, 1u}, {5u, 7u, 3u}, {33u, 18u, 50u}, {16u, 32u, 48u}}) {
    Matrices matrices(m, n, k);
    matrices.run(tiled_matmul(), {(n + 15) / 16, (m + 15) / 16, 1});
    EXPECT_EQ(matrices.c, matrices.expected);
  }
}

TEST(Interpreter, RunsMillionsOfOperationsPerSecond) {
  auto start = std::chrono::steady_clock::now();
  std::vector<uint32_t> result = run_one(128, [](Builder& b, Value i) {
    std::vector<Value> out = b.for_range(b.u32(0), b.u32(5000), b.u32(1), std::array{i},
                                         [&](Value k, std::span<const Value> c) {
                                           Value x = c[0];
                                           for (int j = 0; j < 8; ++j) x = b.add(b.mul(x, x), k);
                                           return std::vector{x};
                                         });
    return out[0];
  });
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  uint32_t expected = 3;
  for (uint32_t k = 0; k < 5000; ++k) {
    for (int j = 0; j < 8; ++j) expected = expected * expected + k;
  }
  EXPECT_EQ(result[3], expected);
  double rate = 128 * 5000 * 16 / seconds.count() / 1e6;
  RecordProperty("million_lane_operations_per_second", static_cast<int>(rate));
  EXPECT_GT(rate, 0.5);
}

}  // namespace
}  // namespace meganeura::device
