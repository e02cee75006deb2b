#include "tests/random_graph.h"

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "meganeura/error.h"
#include "meganeura/ops.h"

namespace meganeura {
namespace {

// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(limit));
  }
  double real() { return static_cast<double>(next() >> 40) * 0x1p-24 * 2.0 - 1.0; }

 private:
  uint64_t state_;
};

class Builder {
 public:
  Builder(RandomGraph& out, uint64_t seed) : out_(out), random_(seed) {}

  void build(int ops) {
    for (int i = 0; i < 3; ++i) values_.push_back(leaf(i));
    for (int i = 0; i < ops; ++i) values_.push_back(squash(random_op()));
    const int64_t count = 1 + random_.below(3);
    for (int64_t i = 0; i < count; ++i) {
      const Tensor value = i == 0 ? values_.back() : pick();
      out_.outputs.push_back({cat("output", i), value});
    }
    add_assigns();
  }

 private:
  Shape shape() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 15, 17};
    std::vector<int64_t> extents(static_cast<size_t>(random_.below(4)));
    for (int64_t& extent : extents) extent = kExtents[random_.below(std::size(kExtents))];
    return Shape(std::move(extents));
  }

  Tensor leaf(int index) {
    const std::string name = cat("leaf", index);
    const Shape extents = shape();
    ReferenceTensor value{extents, f32, {}};
    for (int64_t i = 0; i < extents.elements(); ++i) {
      value.values.push_back(static_cast<float>(random_.real()));
    }
    out_.leaves[name] = value;
    if (index == 0) return out_.graph.input(name, f32, extents);
    states_.push_back(out_.graph.state(name, f32, extents));
    return states_.back();
  }

  // Values stay within about one, so that errors stay comparable.
  Tensor squash(Tensor value) { return random_.below(3) == 0 ? tanh(value) : value * 0.5; }

  Tensor pick() { return values_[static_cast<size_t>(random_.below(std::ssize(values_)))]; }

  Tensor pick_ranked(int rank) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Tensor value = pick();
      if (value.rank() >= rank && value.shape().elements() <= 4000) return value;
    }
    return broadcast_to(reshape(sum(pick()), {1, 1}), Shape{5, 3});
  }

  Tensor random_op() {
    using Make = Tensor (Builder::*)();
    static constexpr Make kMakers[] = {
        &Builder::unary,   &Builder::unary,   &Builder::binary, &Builder::binary, &Builder::binary,
        &Builder::view,    &Builder::view,    &Builder::window, &Builder::reduce, &Builder::reduce,
        &Builder::product, &Builder::indexed, &Builder::choose};
    return (this->*kMakers[random_.below(std::size(kMakers))])();
  }

  Tensor unary() {
    const Tensor x = pick();
    switch (random_.below(8)) {
      case 0:
        return exp(x);
      case 1:
        return sin(x);
      case 2:
        return sigmoid(x);
      case 3:
        return relu(x);
      case 4:
        return sqrt(x * x + 0.5);
      case 5:
        return log(x * x + 1.5);
      case 6:
        return gelu(x);
      default:
        return -x;
    }
  }

  Tensor binary() {
    const Tensor a = pick();
    const Tensor b = fit(pick(), a.shape());
    switch (random_.below(5)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return maximum(a, b);
      default:
        return a / (b * b + 1.0);
    }
  }

  // The tensor itself where it broadcasts with the shape, else its sum.
  Tensor fit(Tensor value, const Shape& shape) {
    try {
      if (broadcast_shapes(value.shape(), shape).elements() <= 20000) return value;
    } catch (const Error&) {
    }
    return sum(value) * (1.0 / static_cast<double>(std::max<int64_t>(value.shape().elements(), 1)));
  }

  Tensor view() {
    const Tensor x = pick_ranked(1);
    std::vector<int64_t> order(static_cast<size_t>(x.rank()));
    switch (random_.below(4)) {
      case 0:
        return flatten(x);
      case 1:
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
        std::rotate(order.begin(), order.begin() + random_.below(x.rank()), order.end());
        return permute(x, order);
      case 2:
        return reshape(x, {-1, x.shape()[x.rank() - 1]});
      default: {
        std::vector<int64_t> starts, ends, steps;
        for (int64_t extent : x.shape()) {
          starts.push_back(random_.below(extent));
          ends.push_back(starts.back() + 1 + random_.below(extent - starts.back()));
          steps.push_back(1 + random_.below(2));
        }
        return slice(x, starts, ends, steps);
      }
    }
  }

  Tensor window() {
    const Tensor x = pick_ranked(1);
    if (random_.below(2) == 0) {
      std::vector<int64_t> low, high;
      for (int i = 0; i < x.rank(); ++i) {
        low.push_back(random_.below(3));
        high.push_back(random_.below(3));
      }
      return pad(x, low, high, 0.25);
    }
    const int64_t axis = random_.below(x.rank());
    const std::vector<Tensor> parts = {x, x * 0.5, -x};
    return concat(parts, axis);
  }

  Tensor reduce() {
    const Tensor x = pick_ranked(1);
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      if (random_.below(2) == 0) axes.push_back(axis);
    }
    if (axes.empty()) axes.push_back(random_.below(x.rank()));
    const bool keep = random_.below(2) == 0;
    switch (random_.below(4)) {
      case 0:
        return max(x, axes, keep);
      case 1:
        return softmax(x, axes[0]);
      case 2:
        return variance(x, axes, keep);
      default:
        return mean(x, axes, keep);
    }
  }

  Tensor product() {
    const Tensor a = pick_ranked(2);
    const int64_t k = a.shape()[a.rank() - 1];
    const Tensor flat = reshape(a, {-1, k});
    const Tensor b = random_.below(2) == 0 ? flat : tanh(flat + 0.25);
    return contract(flat, b, {}, {}, {1}, {1}) * (1.0 / static_cast<double>(k));
  }

  Tensor indexed() {
    const Tensor x = pick_ranked(2);
    const int64_t rows = x.shape()[0];
    const Tensor indices = cast(abs(iota(out_.graph, Shape{6}, 0, i32) * 5.0 - 3.0), i32);
    const Tensor bounded = rem(indices, out_.graph.scalar(static_cast<double>(rows), i32));
    const Tensor taken = gather(x, bounded, 0);
    if (random_.below(2) == 0) return taken;
    return scatter_add(x * 0.5, bounded, taken);
  }

  Tensor choose() {
    const Tensor a = pick();
    const Tensor b = fit(pick(), a.shape());
    const Tensor index = iota(out_.graph, Shape{7}, 0, f32);
    const Tensor odd = equal(rem(index, out_.graph.scalar(2.0)), out_.graph.scalar(1.0));
    const Tensor condition =
        a.rank() > 0 && a.shape()[a.rank() - 1] == 7 ? odd : reshape(slice(odd, {1}, {2}), {});
    return select(condition, a, b);
  }

  void add_assigns() {
    for (Tensor state : states_) {
      if (random_.below(2) == 0) continue;
      const Tensor value = fit_exactly(pick(), state.shape());
      out_.outputs.push_back(
          {cat("assign", out_.outputs.size()), assign(state, value + state * 0.5)});
    }
  }

  Tensor fit_exactly(Tensor value, const Shape& shape) {
    if (value.shape() == shape) return value;
    return broadcast_to(mean(value), shape);
  }

  RandomGraph& out_;
  Random random_;
  std::vector<Tensor> values_;
  std::vector<Tensor> states_;
};

}  // namespace

RandomGraph random_graph(uint64_t seed, int ops) {
  RandomGraph out;
  Builder(out, seed).build(ops);
  return out;
}

}  // namespace meganeura
