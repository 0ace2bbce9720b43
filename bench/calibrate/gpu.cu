// Measures a GPU for its machine file (docs/cost_model.md): bandwidth by size, bytes in flight, rates of pipes, gaps between
// launches, barriers. Prints the file as JSON; raw figures go to standard error.
//
//     nvcc -O3 -arch=sm_90 -o gpu_calibrate bench/calibrate/gpu.cu && ./gpu_calibrate > machines/raw/h200.json
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>

namespace {

void Check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(4);
}
#define CHECK(call) Check(call, #call)

// ---- memory: each thread moves 16 bytes at a time, as generated kernels do

__global__ void CopyKernel(const float4* x, float4* y, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) y[i] = x[i];
}

__global__ void ReadKernel(const float4* x, float4* y, size_t count) {
  float4 sum = {0, 0, 0, 0};
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    float4 v = x[i];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  if (sum.x == 12345.678f) y[0] = sum;
}

__global__ void WriteKernel(float4* y, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    y[i] = float4{1, 2, 3, 4};
}

// Dependent accesses, one 16-byte word per thread: the bytes in flight are proportional to the
// number of threads.
__global__ void FlightKernel(const float4* x, float4* y, size_t count) {
  float4 sum = {0, 0, 0, 0};
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  while (i < count) {
    float4 v = x[i];
    sum.x += v.x;
    i += size_t(gridDim.x) * blockDim.x + (v.y == 12345.678f);  // depends on the previous access
  }
  if (sum.x == 12345.678f) y[0] = sum;
}

// ---- pipes: independent chains of one operation in every thread

enum class What { kAdd, kMul, kFma, kIntAdd, kIntMul, kLogic, kMufu, kSqrt, kDivide, kConvert, kFma64, kDivide64, kSqrt64, kIntDivide,
                  kShuffle, kMultiply16 };
constexpr int kChains = 8, kTrips = 512;

// `other`: the value of another chain, so that the compiler cannot combine integer operations.
template <What what>
__device__ float Step(float x, float other) {
  if constexpr (what == What::kAdd) return x + 1.25f;
  if constexpr (what == What::kMul) return x * 1.0001f;
  if constexpr (what == What::kFma) return fmaf(x, 1.0001f, 0.5f);
  if constexpr (what == What::kIntAdd) return __int_as_float(__float_as_int(x) + __float_as_int(other));
  if constexpr (what == What::kIntMul) return __int_as_float(__float_as_int(x) * __float_as_int(other));
  if constexpr (what == What::kLogic) return __int_as_float(__float_as_int(x) ^ (__float_as_int(other) & 0x7ffffffe));
  if constexpr (what == What::kMufu) {
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
  if constexpr (what == What::kSqrt) return __fsqrt_rn(x + 1.5f);
  if constexpr (what == What::kDivide) return __fdiv_rn(3.0f, x + 1.5f);
  if constexpr (what == What::kConvert) return float(int(x * 0.75f));
  if constexpr (what == What::kShuffle) return __shfl_xor_sync(0xffffffffu, x, 1);
  if constexpr (what == What::kIntDivide) return __int_as_float(2000000000 / (__float_as_int(x) | 1));
  return x;
}
template <What what>
__device__ double Step64(double x) {
  if constexpr (what == What::kFma64) return fma(x, 1.0001, 0.5);
  if constexpr (what == What::kDivide64) return 3.0 / (x + 1.5);
  if constexpr (what == What::kSqrt64) return sqrt(x + 1.5);
  return x;
}

template <What what>
__global__ void PipeKernel(float* y) {
  constexpr bool wide = what == What::kFma64 || what == What::kDivide64 || what == What::kSqrt64;
  using T = std::conditional_t<wide, double, float>;
  T x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = T(1) + T(threadIdx.x + c) * T(1e-3);
  for (int r = 0; r < kTrips; ++r) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
      if constexpr (wide) x[c] = Step64<what>(x[c]);
      if constexpr (!wide) x[c] = Step<what>(x[c], x[(c + 1) % kChains]);
    }
  }
  T sum = 0;
  for (int c = 0; c < kChains; ++c) sum += x[c];
  if (sum == T(12345.678)) y[0] = float(sum);
}

// Tensor cores: m16n8k16 of bf16, 2048 multiply-adds a warp.
__global__ void TensorKernel(float* y) {
  float d[4][4] = {};
  uint32_t a[4] = {0x3f803f80, 0x3f813f81, 0x3f823f82, 0x3f833f83}, b[2] = {0x3f803f80, 0x3f813f81};
  for (int r = 0; r < kTrips; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  float sum = 0;
  for (int c = 0; c < 4; ++c) sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
  if (sum == 12345.678f) y[0] = sum;
}

// Shared memory and L1: adjacent words, or random ones.
__global__ void LoadKernel(const float* x, const int* indices, float* y, int anywhere) {
  float sum[4] = {};
  int at = threadIdx.x;
  for (int r = 0; r < kTrips; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      int i = anywhere ? indices[(at + c * 1024) & 4095] : (at + c * 1024) & 4095;
      sum[c] += x[i];
    }
    at += 32;
  }
  float all = sum[0] + sum[1] + sum[2] + sum[3];
  if (all == 12345.678f) y[0] = all;
}

__global__ void BarrierKernel(float* y, int iterations) {
  __shared__ float kept[1024];
  float x = threadIdx.x;
  for (int r = 0; r < iterations; ++r) {
    kept[threadIdx.x] = x;
    __syncthreads();
    x += kept[(threadIdx.x + 33) & (blockDim.x - 1)];
    __syncthreads();
  }
  if (x == 12345.678f) y[0] = x;
}
__global__ void EmptyKernel(float* y) {
  if (y == nullptr) return;
}

// ---- timing

cudaStream_t stream;

// Microseconds per run: the best of several repetitions, each of `runs` runs in a row.
template <typename F>
double BestUs(F&& launch, int runs = 10, int iterations = 7) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  launch();
  CHECK(cudaStreamSynchronize(stream));
  float best = 1e30f;
  for (int round = 0; round < iterations; ++round) {
    CHECK(cudaEventRecord(begin, stream));
    for (int i = 0; i < runs; ++i) launch();
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    best = std::min(best, ms / runs);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  return best * 1000.0;
}

// Like the above, with one graph of `runs` launches.
template <typename F>
double GraphUs(F&& launch, int runs) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < runs; ++i) launch();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  double us = BestUs([&] { CHECK(cudaGraphLaunch(exec, stream)); }, 3) / runs;
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return us;
}

int multiprocessors = 1;
double empty_us = 0;  // of a launch in a row, which overlaps with the previous one

// Nanoseconds per operation on one SM.
template <What what>
double PipeNs(const char* name, float* y, double ops = 1) {
  int blocks = multiprocessors * 8, threads = 256;
  double us = BestUs([&] { PipeKernel<what><<<blocks, threads, 0, stream>>>(y); }, 4);
  double count = double(threads) * 8 * kChains * kTrips * ops;  // on one SM
  double ns = us * 1000 / count;
  std::fprintf(stderr, "pipe %-12s %.5f ns, %.1f a ns and multiprocessor\n", name, ns, 1 / ns);
  return ns;
}

struct Point {
  double bytes, read, write, copy;
};

std::vector<Point> Curve(float4* x, float4* y, size_t most) {
  std::vector<Point> points;
  for (size_t bytes = size_t(1) << 20; bytes <= most; bytes *= 2) {
    size_t count = bytes / 16;
    int blocks = int(std::min<size_t>((count + 255) / 256, size_t(multiprocessors) * 16));
    int runs = bytes < (size_t(64) << 20) ? 20 : 4;
    double read = BestUs([&] { ReadKernel<<<blocks, 256, 0, stream>>>(x, y, count); }, runs);
    double write = BestUs([&] { WriteKernel<<<blocks, 256, 0, stream>>>(y, count); }, runs);
    double copy = BestUs([&] { CopyKernel<<<blocks, 256, 0, stream>>>(x, y, count / 2); }, runs);
    std::fprintf(stderr, "bytes %zu: read %.2f us, write %.2f, copy %.2f\n", bytes, read, write, copy);
    // A time close to that of an empty launch does not measure memory.
    if (std::min({read, write, copy}) < 1.5 * empty_us) continue;
    auto rate = [&](double us) { return bytes / (std::max(us - empty_us, us / 2) * 1000); };
    points.push_back({double(bytes), rate(read), rate(write), rate(copy)});
  }
  return points;
}

// Bytes that an SM must have in flight to reach nine tenths of the full bandwidth.
double BytesInFlight(const float4* x, float4* y, size_t bytes) {
  size_t count = bytes / 16;
  std::vector<std::pair<double, double>> points;
  double best = 0;
  for (int threads = 64; threads <= 2048; threads *= 2) {
    int block = std::min(threads, 512), blocks = multiprocessors * (threads / block);
    double us = BestUs([&] { FlightKernel<<<blocks, block, 0, stream>>>(x, y, count); }, 2, 4);
    double rate = bytes / (us * 1000);
    std::fprintf(stderr, "in flight %d bytes a multiprocessor: %.0f bytes/ns\n", threads * 16, rate);
    points.emplace_back(threads * 16.0, rate);
    best = std::max(best, rate);
  }
  for (auto [flight, rate] : points)
    if (rate >= 0.9 * best) return flight;
  return points.back().first;
}

}  // namespace

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  CHECK(cudaStreamCreate(&stream));
  multiprocessors = device.multiProcessorCount;
  size_t most = size_t(1) << 30;
  float4 *x, *y;
  int* indices;
  CHECK(cudaMalloc(&x, most));
  CHECK(cudaMalloc(&y, most));
  CHECK(cudaMalloc(&indices, 4096 * sizeof(int)));
  std::vector<float> filling(1 << 22);
  for (size_t i = 0; i < filling.size(); ++i) filling[i] = 0.5f + float(i * 2654435761u >> 8) * 0x1p-24f;
  for (size_t at = 0; at < most; at += filling.size() * 4)
    CHECK(cudaMemcpy(reinterpret_cast<char*>(x) + at, filling.data(), filling.size() * 4, cudaMemcpyHostToDevice));
  std::vector<int> random(4096);
  for (size_t i = 0; i < random.size(); ++i) random[i] = int(i * 2654435761u >> 12 & 4095);
  CHECK(cudaMemcpy(indices, random.data(), random.size() * 4, cudaMemcpyHostToDevice));
  auto* out = reinterpret_cast<float*>(y);

  double stream_gap = BestUs([&] { EmptyKernel<<<1, 32, 0, stream>>>(out); }, 500);
  double graph_gap = GraphUs([&] { EmptyKernel<<<1, 32, 0, stream>>>(out); }, 500);
  empty_us = stream_gap;
  std::fprintf(stderr, "gaps: stream %.3f us, graph %.3f us\n", stream_gap, graph_gap);
  std::vector<Point> curve = Curve(x, y, most);
  double flight = BytesInFlight(x, y, most);

  double add = PipeNs<What::kAdd>("add", out), mul = PipeNs<What::kMul>("mul", out), fma = PipeNs<What::kFma>("fma", out);
  double int_add = PipeNs<What::kIntAdd>("int add", out), logic = PipeNs<What::kLogic>("logic", out, 1);
  double int_mul = PipeNs<What::kIntMul>("int mul", out), mufu = PipeNs<What::kMufu>("mufu", out);
  double root = PipeNs<What::kSqrt>("sqrt", out), divide = PipeNs<What::kDivide>("div", out);
  double convert = PipeNs<What::kConvert>("cvt", out, 2), fma64 = PipeNs<What::kFma64>("fma64", out);
  double divide64 = PipeNs<What::kDivide64>("div64", out), root64 = PipeNs<What::kSqrt64>("sqrt64", out);
  double int_divide = PipeNs<What::kIntDivide>("int div", out), shuffle = PipeNs<What::kShuffle>("shuffle", out);
  int blocks = multiprocessors * 8;
  double tensor_us = BestUs([&] { TensorKernel<<<blocks, 256, 0, stream>>>(out); }, 4);
  double tensor = tensor_us * 1000 / (8.0 * 8 * 4 * kTrips * 2048);
  auto load_ns = [&](int anywhere) {
    double us = BestUs([&] { LoadKernel<<<blocks, 256, 0, stream>>>(reinterpret_cast<float*>(x), indices, out, anywhere); }, 4);
    return us * 1000 / (8.0 * 256 * 4 * kTrips);
  };
  double load = load_ns(0), gather = load_ns(1);
  double few = BestUs([&] { BarrierKernel<<<multiprocessors, 256, 0, stream>>>(out, 64); }, 4);
  double many = BestUs([&] { BarrierKernel<<<multiprocessors, 256, 0, stream>>>(out, 2112); }, 4);
  double barrier = (many - few) / (2048 * 2);
  std::fprintf(stderr, "tensor %.6f, load %.5f, gather %.5f ns; barrier %.4f us; shuffle %.5f\n", tensor, load, gather, barrier, shuffle);

  std::printf("{\n \"name\": \"%s\",\n \"cpu\": \"%s\",\n \"cores\": %d,\n \"source\": \"bench/calibrate/gpu.cu\",\n", device.name,
              std::string(device.name).find("H200") != std::string::npos ? "NVIDIA H200" : device.name, multiprocessors);
  for (const char* name : {"one", "all"}) {
    std::printf("%s \"%s\": [", name[0] == 'o' ? " \"bandwidth\": {\n " : "", name);
    for (size_t i = 0; i < curve.size(); ++i)
      std::printf("%s\n   {\"bytes\": %.0f, \"read\": %.5g, \"write\": %.5g, \"copy\": %.5g}", i == 0 ? "" : ",", curve[i].bytes, curve[i].read,
                  curve[i].write, curve[i].copy);
    std::printf("\n  ]%s\n", name[0] == 'o' ? "," : "},");
  }
  double simple = (add + mul + fma + int_add + logic) / 5;
  std::printf(" \"ns\": {\"simple\": %.5g, \"integer\": %.5g, \"divide\": %.5g, \"divide64\": %.5g, \"root\": %.5g, \"root64\": %.5g, "
              "\"convert\": %.5g, \"scalar\": %.5g, \"index\": %.5g, \"load\": %.5g, \"store\": %.5g, \"gather\": %.5g, \"scatter\": %.5g, "
              "\"branch\": %.5g, \"multiply\": %.5g, \"multiply64\": %.5g, \"multiply16\": %.5g},\n",
              simple, int_mul, divide, divide64, root, root64, convert, int_divide, int_add, load, load, gather, gather, int_add, fma, fma64,
              tensor);
  std::printf(" \"mufu_ns\": %.5g,\n \"l1_bytes\": %d,\n \"l2_bytes\": %d,\n \"l3_bytes\": %d,\n", mufu, 128 << 10, device.l2CacheSize,
              device.l2CacheSize);
  std::printf(" \"latency_ns\": 4,\n \"step_us\": 0,\n \"task_us\": 0,\n \"line_ns\": 0,\n \"min_chunk_us\": 0,\n \"overlap_exponent\": 6,\n \"fork_us\": [],\n");
  std::printf(" \"stream_gap_us\": %.4g,\n \"graph_gap_us\": %.4g,\n \"barrier_us\": %.4g,\n \"bytes_in_flight\": %.0f,\n", stream_gap, graph_gap,
              barrier, flight);
  std::printf(" \"registers\": %d,\n \"threads\": %d,\n \"shared_bytes\": %zu\n}\n", device.regsPerMultiprocessor,
              device.maxThreadsPerMultiProcessor, device.sharedMemPerMultiprocessor);
}
