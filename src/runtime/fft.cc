// Fast Fourier transforms of lines. Lines are transformed in groups: a group is interleaved element
// by element, with real and imaginary parts in separate arrays, so that every step is a vector
// operation over all its lines.
//
//   factors up to 13     mixed-radix Stockham passes, each from one buffer to the other
//   other lengths        Bluestein: ((x w) * conj(w)) w, * a convolution, w[k] = e^(-i pi k^2 / n)
//   real lines           two as one complex line, separated by the symmetry of their spectra
//
// Stockham passes need no bit reversal: each pass leaves the data in order for the next.
// Bluestein's convolution uses power-of-two transforms of at least 2 n - 1 elements, which a Plan
// contains. Twiddles are computed in long double and k^2 modulo 2 n, so that large lengths lose no
// accuracy. O(n log n) for every length.

#include "runtime/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/fft_lines.h"
#include "runtime/fft_passes.h"
#include "runtime/host_allocator.h"
#include "runtime/thread_pool.h"
#include "support/check.h"

namespace tokamak {
namespace {

using fft::Buffers;
using fft::Pass;

// Lines of a group, and elements of a group that fit the L1/L2 caches. Chosen; no measurement on
// record.
constexpr int64_t kGroup = 16, kGroupNumbers = 1 << 15;
// Elements between buffers. Avoids 4K aliasing: a load at the same page offset as an earlier store
// would wait for it.
constexpr int64_t kGap = 80;
// Minimum elements per thread. Chosen; no measurement on record.
constexpr int64_t kMinChunkNumbers = 1 << 14;

// Scratch memory, reused through the host allocator.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes), data_(HostAllocator::OfProcess().Allocate(bytes)) {
    TOK_CHECK(data_ != nullptr, "there is memory for a few lines");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { HostAllocator::OfProcess().Free(data_, bytes_); }
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

// e^(2 pi i numerator / denominator); conjugated unless `inverse`.
void UnitRoot(int64_t numerator, int64_t denominator, bool inverse, double& re, double& im) {
  long double angle = 2 * std::numbers::pi_v<long double> *
                      static_cast<long double>(numerator % denominator) /
                      static_cast<long double>(denominator);
  re = static_cast<double>(std::cos(angle));
  im = static_cast<double>(inverse ? std::sin(angle) : -std::sin(angle));
}

template <typename T>
class Plan {
 public:
  Plan(int64_t length, bool inverse) : length_(length) {
    int64_t rest = length;
    std::vector<int64_t> factors;
    for (int64_t factor : {4, 2, 3, 5, 7, 11, 13})
      for (; rest % factor == 0; rest /= factor) factors.push_back(factor);
    if (rest > 1) {
      MakeChirp(inverse);
      return;
    }
    int64_t left = length, stride = 1;
    for (int64_t factor : factors) {
      passes_.push_back(MakePass(factor, left, stride, inverse));
      left /= factor;
      stride *= factor;
    }
  }

  int64_t length() const { return length_; }
  // Elements of each buffer that a group of `lines` lines needs.
  int64_t Needs(int64_t lines) const { return lines * (inner_.empty() ? length_ : padded_); }

  // Transforms the lines in x; y has the same size. The result is in x.
  void Run(Buffers<T>& x, Buffers<T>& y, int64_t lines) const {
    if (!inner_.empty()) return RunChirp(x, y, lines);
    for (const Pass<T>& pass : passes_) {
      fft::RunPass(pass, x, y, lines);
      std::swap(x, y);
    }
  }

 private:
  static Pass<T> MakePass(int64_t factor, int64_t left, int64_t stride, bool inverse) {
    Pass<T> pass{.factor = factor, .rest = left / factor, .stride = stride};
    double re = 0, im = 0;
    for (int64_t k = 1; k < factor; ++k) {
      for (int64_t p = 0; p < pass.rest; ++p) {
        UnitRoot(p * k, left, inverse, re, im);
        pass.twist_re.push_back(static_cast<T>(re));
        pass.twist_im.push_back(static_cast<T>(im));
      }
    }
    for (int64_t k = 0; k < factor; ++k) {
      UnitRoot(k, factor, inverse, re, im);
      pass.root_re.push_back(static_cast<T>(re));
      pass.root_im.push_back(static_cast<T>(im));
    }
    pass.inverse = inverse;
    return pass;
  }

  // The spectrum of the conjugated chirp, divided by the padded length: the inner inverse transform
  // does not scale.
  void MakeChirp(bool inverse) {
    padded_ = 1;
    while (padded_ < 2 * length_ - 1) padded_ *= 2;
    inner_.emplace_back(padded_, false);
    inner_.emplace_back(padded_, true);
    chirp_.resize(2 * length_);
    std::vector<T> numbers[4];
    for (std::vector<T>& part : numbers) part.assign(static_cast<size_t>(padded_), 0);
    int64_t square = 0;  // k * k modulo 2 n
    for (int64_t k = 0; k < length_; ++k) {
      double re = 0, im = 0;
      UnitRoot(square, 2 * length_, inverse, re, im);
      square = (square + 2 * k + 1) % (2 * length_);
      chirp_.re[k] = static_cast<T>(re);
      chirp_.im[k] = static_cast<T>(im);
      for (int64_t at : {k, (padded_ - k) % padded_}) {
        numbers[0][static_cast<size_t>(at)] = static_cast<T>(re);
        numbers[1][static_cast<size_t>(at)] = static_cast<T>(-im);
      }
    }
    Buffers<T> x{numbers[0].data(), numbers[1].data()}, y{numbers[2].data(), numbers[3].data()};
    inner_[0].Run(x, y, 1);
    spectrum_.resize(padded_);
    for (int64_t k = 0; k < padded_; ++k) {
      spectrum_.re[k] = x.re[k] / static_cast<T>(padded_);
      spectrum_.im[k] = x.im[k] / static_cast<T>(padded_);
    }
  }

  void RunChirp(Buffers<T>& x, Buffers<T>& y, int64_t lines) const {
    fft::Multiply(x, chirp_.re.data(), chirp_.im.data(), length_, lines);
    std::fill(x.re + length_ * lines, x.re + padded_ * lines, T(0));
    std::fill(x.im + length_ * lines, x.im + padded_ * lines, T(0));
    inner_[0].Run(x, y, lines);
    fft::Multiply(x, spectrum_.re.data(), spectrum_.im.data(), padded_, lines);
    inner_[1].Run(x, y, lines);
    fft::Multiply(x, chirp_.re.data(), chirp_.im.data(), length_, lines);
  }

  struct Numbers {
    std::vector<T> re, im;
    void resize(int64_t count) {
      re.resize(static_cast<size_t>(count));
      im.resize(static_cast<size_t>(count));
    }
  };

  int64_t length_, padded_ = 0;
  std::vector<Pass<T>> passes_;
  std::vector<Plan> inner_;  // of the chirp: forward and inverse
  Numbers chirp_, spectrum_;
};

// The lines of an array along one dimension.
struct Lines {
  int64_t length = 1, stride = 1;  // elements of a line, and their stride
  int64_t count = 1;
  // The first element of a line.
  int64_t Begin(int64_t line) const { return line / stride * stride * length + line % stride; }
};

Lines LinesOf(const std::vector<int64_t>& dims, size_t along) {
  Lines lines{.length = dims[along]};
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d > along) lines.stride *= dims[d];
    if (d != along) lines.count *= dims[d];
  }
  return lines;
}

template <typename T>
class FourierOf final : public Fourier {
 public:
  explicit FourierOf(const FourierShape& shape) : shape_(shape) {
    bool inverse = shape.kind == FourierKind::kInverse || shape.kind == FourierKind::kToReal;
    const std::vector<int64_t>& lengths =
        shape.kind == FourierKind::kToReal ? shape.output : shape.input;
    size_t rank = lengths.size();
    for (size_t d = rank - shape.transformed; d < rank; ++d) {
      plans_.emplace_back(lengths[d], inverse);
      if (inverse) scale_ /= static_cast<double>(lengths[d]);
    }
  }

  // Real transforms treat the last dimension first (from real) or last (to real); the others are
  // complex. The scale of an inverse is applied once.
  void Run(const void* input, void* output) const override {
    auto* to = static_cast<T*>(output);
    size_t rank = shape_.input.size(), first = rank - shape_.transformed;
    switch (shape_.kind) {
      case FourierKind::kFromReal:
        FromReal(static_cast<const T*>(input), to);
        for (size_t d = first; d + 1 < rank; ++d) Along(to, to, shape_.output, d, T(1));
        break;
      case FourierKind::kToReal: {
        const T* from = static_cast<const T*>(input);
        std::vector<T> between;
        if (shape_.transformed > 1) {
          int64_t count = 2;
          for (int64_t size : shape_.input) count *= size;
          between.assign(from, from + count);
          for (size_t d = first; d + 1 < rank; ++d)
            Along(between.data(), between.data(), shape_.input, d, T(1));
          from = between.data();
        }
        ToReal(from, to);
        break;
      }
      default: {
        const T* from = static_cast<const T*>(input);
        for (size_t d = rank; d-- > first; from = to)
          Along(from, to, shape_.input, d, d == first ? static_cast<T>(scale_) : T(1));
      }
    }
  }

 private:
  // Calls body(first line, lines, x, y) for groups of lines, in parallel.
  template <typename Body>
  void ForGroups(const Plan<T>& plan, int64_t lines, Body&& body) const {
    int64_t group = std::min(kGroup, lines);
    while (group > 4 && plan.Needs(group) > kGroupNumbers) group /= 2;
    int64_t groups = (lines + group - 1) / group;
    int64_t min_chunk = std::max<int64_t>(1, kMinChunkNumbers / plan.Needs(group));
    ThreadPool::OfProcess().For(groups, min_chunk, [&](int64_t begin, int64_t end) {
      auto size = static_cast<size_t>(plan.Needs(group) + kGap);
      Memory memory(4 * size * sizeof(T));
      for (int64_t g = begin; g < end; ++g) {
        T* numbers = static_cast<T*>(memory.data());
        Buffers<T> x{numbers, numbers + size}, y{numbers + 2 * size, numbers + 3 * size};
        body(g * group, std::min(group, lines - g * group), x, y);
      }
    });
  }

  // Transforms complex lines along a dimension; `from` and `to` may be the same.
  void Along(const T* from, T* to, const std::vector<int64_t>& dims, size_t d, T scale) const {
    const Plan<T>& plan = plans_[d - (dims.size() - shape_.transformed)];
    Lines lines = LinesOf(dims, d);
    ForGroups(plan, lines.count, [&](int64_t first, int64_t count, Buffers<T>& x, Buffers<T>& y) {
      // A group can be moved at once unless it crosses an outer index.
      bool whole = lines.stride == 1 || first % lines.stride + count <= lines.stride;
      if (whole) {
        fft::Side side{count, lines.length, lines.stride, lines.stride == 1 ? lines.length : 1};
        fft::Fetch(from + 2 * lines.Begin(first), side, x);
        plan.Run(x, y, count);
        fft::Put(x, side, scale, to + 2 * lines.Begin(first));
        return;
      }
      for (int64_t l = 0; l < count; ++l) {
        const T* line = from + 2 * lines.Begin(first + l);
        for (int64_t i = 0; i < lines.length; ++i) {
          x.re[i * count + l] = line[2 * i * lines.stride];
          x.im[i * count + l] = line[2 * i * lines.stride + 1];
        }
      }
      plan.Run(x, y, count);
      for (int64_t l = 0; l < count; ++l) {
        T* line = to + 2 * lines.Begin(first + l);
        for (int64_t i = 0; i < lines.length; ++i) {
          line[2 * i * lines.stride] = x.re[i * count + l] * scale;
          line[2 * i * lines.stride + 1] = x.im[i * count + l] * scale;
        }
      }
    });
  }

  fft::Pairs PairsOf(int64_t first, int64_t pairs, int64_t count) const {
    return {pairs, plans_.back().length(), 2 * (first + pairs) > count};
  }

  void FromReal(const T* from, T* to) const {
    const Plan<T>& plan = plans_.back();
    int64_t n = plan.length(), half = shape_.output.back(),
            count = LinesOf(shape_.input, shape_.input.size() - 1).count;
    ForGroups(plan, (count + 1) / 2,
              [&](int64_t first, int64_t pairs, Buffers<T>& x, Buffers<T>& y) {
                fft::Pairs of = PairsOf(first, pairs, count);
                fft::FetchPairs(from + 2 * first * n, of, x);
                plan.Run(x, y, pairs);
                fft::PutSpectra(x, of, to + 4 * first * half);
              });
  }

  void ToReal(const T* from, T* to) const {
    const Plan<T>& plan = plans_.back();
    int64_t n = plan.length(), half = shape_.input.back(),
            count = LinesOf(shape_.output, shape_.output.size() - 1).count;
    ForGroups(plan, (count + 1) / 2,
              [&](int64_t first, int64_t pairs, Buffers<T>& x, Buffers<T>& y) {
                fft::Pairs of = PairsOf(first, pairs, count);
                fft::FetchSpectra(from + 4 * first * half, of, x);
                plan.Run(x, y, pairs);
                fft::PutPairs(x, of, static_cast<T>(scale_), to + 2 * first * n);
              });
  }

  FourierShape shape_;
  std::vector<Plan<T>> plans_;  // of the transformed dimensions
  double scale_ = 1;
};

}  // namespace

std::unique_ptr<Fourier> MakeFourier(const FourierShape& shape) {
  if (shape.is_double) return std::make_unique<FourierOf<double>>(shape);
  return std::make_unique<FourierOf<float>>(shape);
}

}  // namespace tokamak
