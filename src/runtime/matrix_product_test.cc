#include "runtime/matrix_product.h"

#include <cmath>
#include <complex>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

template <typename T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr MatrixType value = MatrixType::kF32;
};
template <>
struct TypeOf<double> {
  static constexpr MatrixType value = MatrixType::kF64;
};
template <>
struct TypeOf<std::complex<float>> {
  static constexpr MatrixType value = MatrixType::kC64;
};
template <>
struct TypeOf<std::complex<double>> {
  static constexpr MatrixType value = MatrixType::kC128;
};

template <typename T>
std::vector<T> Numbers(size_t count, int seed) {
  std::vector<T> numbers;
  for (size_t i = 0; i < count; ++i) {
    auto x = static_cast<double>((i * 7919 + static_cast<size_t>(seed)) % 201) / 100 - 1;
    if constexpr (std::is_floating_point_v<T>) {
      numbers.push_back(static_cast<T>(x));
    } else {
      numbers.push_back(T(static_cast<typename T::value_type>(x),
                          static_cast<typename T::value_type>(x * x - 0.5)));
    }
  }
  return numbers;
}

// The result memory holds NaN before.
template <typename T>
std::vector<T> Multiplied(const MatrixProduct& p, const std::vector<T>& lhs,
                          const std::vector<T>& rhs, bool backwards = false) {
  ProductCall call{p, BlocksOf(p)};
  std::vector<T> result(static_cast<size_t>(p.BatchCount() * p.m * p.n),
                        T(std::numeric_limits<float>::quiet_NaN()));
  ProductArrays arrays{lhs.data(), rhs.data(), result.data()};
  for (int64_t i = 0; i < call.blocks.count; ++i) {
    int64_t block = backwards ? call.blocks.count - 1 - i : i;
    RunProduct(call, arrays, block, block + 1, nullptr);
  }
  return result;
}

template <typename T>
void Check(MatrixProduct p, bool lhs_transposed, bool rhs_transposed) {
  p.type = TypeOf<T>::value;
  p.lhs = lhs_transposed ? MatrixProduct::Operand{1, p.m} : MatrixProduct::Operand{p.k, 1};
  p.rhs = rhs_transposed ? MatrixProduct::Operand{1, p.k} : MatrixProduct::Operand{p.n, 1};
  int64_t batch = p.BatchCount();
  auto lhs = Numbers<T>(static_cast<size_t>(batch * p.m * p.k), 3);
  auto rhs = Numbers<T>(static_cast<size_t>(batch * p.k * p.n), 5);
  std::vector<T> result = Multiplied(p, lhs, rhs);
  EXPECT_EQ(result, Multiplied(p, lhs, rhs, true));
  double epsilon = sizeof(T) == 4 || p.type == MatrixType::kC64 ? 6e-8 : 1.2e-16;
  double bound = 8 * epsilon * (std::sqrt(static_cast<double>(p.k)) + 1);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        std::complex<long double> sum = 0, size = 0;
        for (int64_t q = 0; q < p.k; ++q) {
          auto x = std::complex<long double>(
              lhs[static_cast<size_t>(b * p.m * p.k + i * p.lhs.row + q * p.lhs.column)]);
          auto y = std::complex<long double>(
              rhs[static_cast<size_t>(b * p.k * p.n + q * p.rhs.row + j * p.rhs.column)]);
          sum += x * y;
          size += std::abs(x) * std::abs(y);
        }
        auto got = std::complex<long double>(result[static_cast<size_t>((b * p.m + i) * p.n + j)]);
        ASSERT_LE(std::abs(got - sum), bound * std::max<long double>(std::abs(size), 1))
            << ToString(p) << " at " << b << " " << i << " " << j;
      }
}

template <typename T>
void CheckAll() {
  struct {
    int64_t m, n, k, batch;
  } sizes[] = {{1, 1, 1, 1},   {1, 7, 5, 1},    {9, 1, 4, 2},     {5, 3, 1, 1},  {17, 33, 9, 3},
               {64, 2, 31, 1}, {1, 300, 70, 1}, {257, 1, 130, 1}, {2, 2, 0, 2},  {0, 3, 4, 1},
               {4, 0, 2, 1},   {3, 3, 3, 0},    {70, 90, 40, 1},  {1, 1, 500, 1}};
  for (auto [m, n, k, batch] : sizes) {
    MatrixProduct p;
    p.m = m, p.n = n, p.k = k;
    if (batch != 1) p.batch = {{batch, m * k, k * n}};
    for (bool lhs : {false, true})
      for (bool rhs : {false, true}) Check<T>(p, lhs, rhs);
  }
}

class MatrixProductTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasMatrixLibrary()) GTEST_SKIP() << "no OpenBLAS here";
  }
};

TEST_F(MatrixProductTest, OddSizes) {
  CheckAll<float>();
  CheckAll<double>();
  CheckAll<std::complex<float>>();
  CheckAll<std::complex<double>>();
}

TEST_F(MatrixProductTest, Blocks) {
  MatrixProduct p;
  p.m = 600, p.n = 500, p.k = 70;
  ProductBlocks blocks = BlocksOf(p);
  EXPECT_GT(blocks.count, 1);
  Check<float>(p, false, true);
  Check<double>(p, true, false);
}

// Concurrent calls do not share the library's scratch memory.
TEST_F(MatrixProductTest, SideBySide) {
  MatrixProduct p;
  p.type = MatrixType::kF32;
  p.m = 32, p.n = 256, p.k = 512;
  p.lhs = {512, 1};
  p.rhs = {256, 1};
  std::vector<float> rhs = Numbers<float>(512 * 256, 2);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      std::vector<float> lhs = Numbers<float>(32 * 512, i), first = Multiplied(p, lhs, rhs);
      for (int repetition = 0; repetition < 60; ++repetition)
        if (Multiplied(p, lhs, rhs) != first) ++wrong[static_cast<size_t>(i)];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST_F(MatrixProductTest, BatchesMayLieAnyhow) {
  // Two batch dimensions between rows and columns: lhs[2,3,4,5], rhs[4,5,2,7], batch 2 and 4.
  MatrixProduct p;
  p.m = 3, p.n = 7, p.k = 5, p.type = MatrixType::kF32;
  p.lhs = {20, 1};
  p.rhs = {14, 1};
  p.batch = {{2, 60, 7}, {4, 5, 70}};
  auto lhs = Numbers<float>(120, 1), rhs = Numbers<float>(280, 2);
  std::vector<float> result = Multiplied(p, lhs, rhs);
  for (size_t a = 0; a < 2; ++a)
    for (size_t b = 0; b < 4; ++b)
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 7; ++j) {
          double sum = 0;
          for (size_t q = 0; q < 5; ++q)
            sum += static_cast<double>(lhs[a * 60 + i * 20 + b * 5 + q]) *
                   static_cast<double>(rhs[b * 70 + q * 14 + a * 7 + j]);
          EXPECT_NEAR(result[((a * 4 + b) * 3 + i) * 7 + j], sum, 1e-5);
        }
}

TEST_F(MatrixProductTest, NotFiniteStaysSo) {
  float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (int64_t n : {1, 40}) {
    MatrixProduct p;
    p.m = 40, p.n = n, p.k = 30, p.lhs = {30, 1}, p.rhs = {n, 1};
    std::vector<float> lhs(1200, 1), rhs(static_cast<size_t>(30 * n), 0);
    lhs[3 * 30 + 7] = inf;  // times 0
    lhs[5 * 30 + 29] = nan;
    std::vector<float> result = Multiplied(p, lhs, rhs);
    for (size_t i = 0; i < 40; ++i)
      EXPECT_EQ(std::isnan(result[i * static_cast<size_t>(n)]), i == 3 || i == 5) << i;
  }
}

TEST_F(MatrixProductTest, Stops) {
  MatrixProduct p;
  p.m = p.n = 2, p.k = 2, p.lhs = p.rhs = {2, 1};
  std::vector<float> x(4, 1), result(4, 9);
  std::atomic<bool> stop = true;
  RunProduct({p, BlocksOf(p)}, {x.data(), x.data(), result.data()}, 0, 1, &stop);
  EXPECT_EQ(result[0], 9);
}

}  // namespace
}  // namespace tokamak
