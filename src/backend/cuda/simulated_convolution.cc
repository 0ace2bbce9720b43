#include "backend/cuda/simulated_convolution.h"

#include <vector>

namespace tokamak::cuda {
namespace {

using SpaceDim = Convolution::Space;

// Calls body with the linear indices into x, w and y of every multiplication.
class Products {
 public:
  explicit Products(const Convolution& c) : c_(c), space_(c.space) {
    while (space_.size() < 3) space_.insert(space_.begin(), SpaceDim{});
  }

  template <typename Body>
  void ForEach(const Body& body) const {
    const int64_t inputs = c_.inputs / c_.groups, outputs = c_.outputs / c_.groups;
    for (int64_t n = 0; n < c_.batch; ++n)
      ForEachTap([&](int64_t x, int64_t w, int64_t y) {
        for (int64_t k = 0; k < c_.outputs; ++k)
          for (int64_t c = 0; c < inputs; ++c)
            body((n * Count(&SpaceDim::x) + x) * c_.inputs + k / outputs * inputs + c,
                 (k * Count(&SpaceDim::w) + w) * inputs + c,
                 (n * Count(&SpaceDim::y) + y) * c_.outputs + k);
      });
  }

 private:
  int64_t Count(int64_t SpaceDim::*of) const {
    return space_[0].*of * (space_[1].*of) * (space_[2].*of);
  }

  // Enumerates all pairs of output point and tap that are within the input.
  template <typename Body>
  void ForEachTap(const Body& body, size_t d = 0, int64_t x = 0, int64_t w = 0,
                  int64_t y = 0) const {
    if (d == space_.size()) return body(x, w, y);
    const SpaceDim& dim = space_[d];
    for (int64_t i = 0; i < dim.y; ++i) {
      for (int64_t j = 0; j < dim.w; ++j) {
        int64_t at = i * dim.stride + j * dim.dilation - dim.pad_low;
        if (at >= 0 && at < dim.x)
          ForEachTap(body, d + 1, x * dim.x + at, w * dim.w + j, y * dim.y + i);
      }
    }
  }

  const Convolution& c_;
  std::vector<SpaceDim> space_;
};

template <typename T>
void ConvolveAs(const Convolution& c, const ProductArrays& arrays) {
  auto* lhs = static_cast<const T*>(arrays.lhs);
  auto* rhs = static_cast<const T*>(arrays.rhs);
  auto* result = static_cast<T*>(arrays.result);
  using Form = Convolution::Form;
  int64_t count = c.form == Form::kForward        ? c.YCount()
                  : c.form == Form::kBackwardData ? c.XCount()
                                                  : c.WCount();
  std::vector<double> sums(static_cast<size_t>(count));
  Products(c).ForEach([&](int64_t x, int64_t w, int64_t y) {
    int64_t to = c.form == Form::kForward ? y : c.form == Form::kBackwardData ? x : w;
    int64_t left = c.form == Form::kBackwardData ? y : x;
    int64_t right = c.form == Form::kBackwardFilter ? y : w;
    sums[static_cast<size_t>(to)] +=
        static_cast<double>(lhs[left]) * static_cast<double>(rhs[right]);
  });
  for (size_t i = 0; i < sums.size(); ++i) result[i] = T(sums[i]);
}

}  // namespace

void Convolve(const Convolution& convolution, const ProductArrays& arrays) {
  switch (convolution.type) {
    case Convolution::Type::kF32:
      return ConvolveAs<float>(convolution, arrays);
    case Convolution::Type::kBF16:
      return ConvolveAs<BF16>(convolution, arrays);
    case Convolution::Type::kF16:
      return ConvolveAs<F16>(convolution, arrays);
  }
}

}  // namespace tokamak::cuda
