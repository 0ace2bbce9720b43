// cuDNN's backend API describes everything by descriptors: create, set attributes by number,
// finalize. A convolution takes this path:
//
//   tensors and window  ->  operation  ->  graph  ->  heuristics  ->  engine configs  ->  plan
//
// The first config that is deterministic, keeps the precision and fits the workspace becomes the
// plan. A plan is created once per distinct convolution, and failures are remembered, too. A run
// only binds three pointers and the workspace (variant pack) to the plan and enqueues it.
//
// The library is loaded with dlopen, so no cuDNN header is needed; enumerators are copied as
// numbers. A descriptor refers to others by handle: the parts of a graph must outlive it. The
// handle of the library allows one call at a time.

#include "backend/cuda/convolutions.h"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <utility>

#include <fmt/format.h>

#include "backend/cuda/library_paths.h"

namespace tokamak::cuda {
namespace {

// Enumerators of cudnn_graph.h (cuDNN 9).
constexpr int kTypeHandle = 0, kTypeData = 1, kTypeInt64 = 3, kTypeFloat = 4, kTypePointer = 6,
              kTypeMode = 7, kTypeHeuristic = 8, kTypeNote = 11, kTypeDescriptor = 15;
constexpr int kConvolution = 1, kEngine = 2, kEngineConfig = 3, kHeuristics = 4, kPlan = 5,
              kGraph = 15, kVariantPack = 16, kTensor = 17;
constexpr int kCompute = 100, kMode = 101, kDilations = 102, kStrides = 103, kPadHigh = 104,
              kPadLow = 105, kSpatial = 106;  // of a convolution
constexpr int kHeuristicMode = 200, kHeuristicGraph = 201, kHeuristicResults = 202;
constexpr int kConfigEngine = 300, kEngineNotes = 1303;
constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402;
constexpr int kGraphHandle = 800, kGraphOperations = 801;
constexpr int kConvolutionAlignment = 900, kDataType = 901, kDims = 902, kTensorStrides = 903,
              kId = 906;
constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
// The slower heuristics of mode B choose better plans: a training step of four convolutions took
// 602 us, with mode A 687 us; the gradient of a strided one in bf16 took 38 us against 82 us
// (measured on an H200).
constexpr int kModeB = 1, kModeFallback = 2, kModeA = 3;
constexpr int kCrossCorrelation = 1, kFloat = 0;
constexpr int kNotes = 10;  // number of numerical notes
constexpr int kTensorCore = 0, kDownConvert = 1, kNarrowSums = 2, kNondeterministic = 4;
constexpr int64_t kAligned = 64;  // bytes: alignment of arrays
// cuDNN 9.0.0, as cudnnGetVersion returns it.
constexpr size_t kOldest = 90000;

// Enumerators of an operation: its descriptor, and its attributes for x, w, y.
struct Operation {
  int kind, alpha, beta, convolution;
  std::array<int, 3> arrays;
};
constexpr Operation kOperations[] = {
    {10, 700, 701, 702, {704, 703, 705}},
    {12, 706, 707, 708, {710, 709, 711}},
    {11, 712, 713, 714, {716, 715, 717}},
};

int DataType(Convolution::Type type) {
  return type == Convolution::Type::kBF16 ? 9 : type == Convolution::Type::kF16 ? 2 : kFloat;
}

}  // namespace

struct Cudnn::Functions {
  size_t (*version)() = nullptr;
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, Handle) = nullptr;
  void (*last_error)(char*, size_t) = nullptr;
  int (*make)(int kind, Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*finalize)(Handle) = nullptr;
  int (*set)(Handle, int name, int type, int64_t count, const void*) = nullptr;
  int (*get)(Handle, int name, int type, int64_t most, int64_t* count, void*) = nullptr;
  int (*execute)(Handle, Handle plan, Handle pack) = nullptr;

  Error Failed(const std::string& what, int status) const {
    std::array<char, 512> text{};
    last_error(text.data(), text.size() - 1);
    return MakeError(ErrorCode::kDeviceFault,
                     fmt::format("cuDNN: {}: status {} {}", what, status, text.data()));
  }
};

// Owns a cuDNN descriptor. After several calls status() is the first that is not 0.
class Cudnn::Descriptor {
 public:
  Descriptor(const Functions& functions, int kind) : f_(&functions) {
    status_ = f_->make(kind, &handle_);
  }
  Descriptor(Descriptor&& other) noexcept
      : f_(other.f_), handle_(std::exchange(other.handle_, nullptr)), status_(other.status_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(f_, other.f_);
    std::swap(handle_, other.handle_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~Descriptor() {
    if (handle_ != nullptr) f_->destroy(handle_);
  }

  Descriptor& Set(int name, int type, int64_t count, const void* values) {
    if (status_ == 0) status_ = f_->set(handle_, name, type, count, values);
    return *this;
  }
  template <typename T>
  Descriptor& SetOne(int name, int type, T value) {
    return Set(name, type, 1, &value);
  }
  Descriptor& SetAll(int name, const std::vector<int64_t>& values) {
    return Set(name, kTypeInt64, static_cast<int64_t>(values.size()), values.data());
  }
  Descriptor& Set(int name, const Descriptor& other) {
    return SetOne(name, kTypeDescriptor, other.handle_);
  }
  Descriptor& Finalize() {
    if (status_ == 0) status_ = f_->finalize(handle_);
    return *this;
  }
  Handle get() const { return handle_; }
  int status() const { return status_; }

 private:
  const Functions* f_;
  Handle handle_ = nullptr;
  int status_ = 0;
};

class Cudnn::Code final : public ProductCode {
 public:
  Code(Descriptor made, size_t bytes, std::string text)
      : plan(std::move(made)), workspace(bytes), label(std::move(text)) {}
  bool IsConvolution() const override { return true; }

  Descriptor plan;
  size_t workspace;
  std::array<int64_t, 3> ids{};  // of the step's arrays
  std::string label;
};

Result<Cudnn*> Cudnn::Load() {
  std::string why;
  void* library = OpenLibrary("libcudnn.so", why);
  if (library == nullptr) return MakeError(ErrorCode::kNoDriver, "cuDNN is not there: " + why);
  static Functions f;
  auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  if (!find("cudnnGetVersion", f.version))
    return MakeError(ErrorCode::kNoDriver, "cuDNN lacks cudnnGetVersion");
  if (size_t version = f.version(); version < kOldest)
    return MakeError(ErrorCode::kNoDriver,
                     fmt::format("cuDNN {} is there; convolutions want 9.0 or later", version));
  if (!find("cudnnCreate", f.create) || !find("cudnnSetStream", f.set_stream) ||
      !find("cudnnGetLastErrorString", f.last_error) ||
      !find("cudnnBackendCreateDescriptor", f.make) ||
      !find("cudnnBackendDestroyDescriptor", f.destroy) ||
      !find("cudnnBackendFinalize", f.finalize) || !find("cudnnBackendSetAttribute", f.set) ||
      !find("cudnnBackendGetAttribute", f.get) || !find("cudnnBackendExecute", f.execute))
    return MakeError(ErrorCode::kNoDriver, "cuDNN lacks a function");
  static auto* cudnn = new Cudnn;
  cudnn->functions_ = &f;
  if (int status = f.create(&cudnn->handle_); status != 0)
    return f.Failed("it does not begin", status);
  return cudnn;
}

Result<Cudnn*> Cudnn::Open() {
  static const auto* loaded = new Result<Cudnn*>(Load());
  return *loaded;
}

// A graph of this operation alone; its `parts` must outlive it.
Result<Cudnn::Descriptor> Cudnn::GraphOf(const Convolution& c,
                                         std::vector<Descriptor>& parts) const {
  const Functions& f = *functions_;
  // A one-dimensional convolution is a two-dimensional one of height 1.
  std::vector<Convolution::Space> space = c.space;
  if (space.size() == 1) space.insert(space.begin(), Convolution::Space{});
  const Operation& numbers = kOperations[static_cast<size_t>(c.form)];
  auto column = [&](int64_t Convolution::Space::*of) {
    std::vector<int64_t> all;
    for (const Convolution::Space& dim : space) all.push_back(dim.*of);
    return all;
  };
  // Dimensions in the library's order, features before space; strides describe our order, with
  // features last.
  auto add_array = [&](int64_t id, int64_t first, int64_t features,
                       int64_t Convolution::Space::*of) {
    std::vector<int64_t> dims = {first, features}, all = column(of);
    dims.insert(dims.end(), all.begin(), all.end());
    std::vector<int64_t> strides(dims.size());
    int64_t stride = strides[1] = 1;
    stride *= features;
    for (size_t d = dims.size(); d-- > 2;) {
      strides[d] = stride;
      stride *= dims[d];
    }
    strides[0] = stride;
    parts.emplace_back(f, kTensor);
    parts.back()
        .SetOne(kDataType, kTypeData, DataType(c.type))
        .SetAll(kDims, dims)
        .SetAll(kTensorStrides, strides)
        .SetOne(kId, kTypeInt64, id)
        .SetOne(kConvolutionAlignment, kTypeInt64, kAligned)
        .Finalize();
  };
  using Space = Convolution::Space;
  parts.reserve(5);
  add_array(1, c.batch, c.inputs, &Space::x);
  add_array(2, c.outputs, c.inputs / c.groups, &Space::w);
  add_array(3, c.batch, c.outputs, &Space::y);
  parts.emplace_back(f, kConvolution);
  parts[3]
      .SetOne(kSpatial, kTypeInt64, static_cast<int64_t>(space.size()))
      .SetOne(kCompute, kTypeData, kFloat)
      .SetOne(kMode, kTypeMode, kCrossCorrelation)
      .SetAll(kPadLow, column(&Space::pad_low))
      .SetAll(kPadHigh, column(&Space::pad_high))
      .SetAll(kStrides, column(&Space::stride))
      .SetAll(kDilations, column(&Space::dilation))
      .Finalize();
  parts.emplace_back(f, numbers.kind);
  for (size_t i = 0; i < 3; ++i) parts[4].Set(numbers.arrays[i], parts[i]);
  parts[4]
      .Set(numbers.convolution, parts[3])
      .SetOne(numbers.alpha, kTypeFloat, 1.0F)
      .SetOne(numbers.beta, kTypeFloat, 0.0F)
      .Finalize();
  Descriptor graph(f, kGraph);
  graph.SetOne(kGraphHandle, kTypeHandle, handle_).Set(kGraphOperations, parts[4]).Finalize();
  for (const Descriptor& part : parts)
    if (part.status() != 0) return f.Failed(ToString(c), part.status());
  if (graph.status() != 0) return f.Failed(ToString(c), graph.status());
  return graph;
}

// Whether an engine is deterministic and computes in the requested precision.
bool Cudnn::IsFit(const Descriptor& choice, bool tensor_cores) const {
  Descriptor engine(*functions_, kEngine);
  Handle handle = engine.get();
  int64_t count = 0;
  if (functions_->get(choice.get(), kConfigEngine, kTypeDescriptor, 1, &count, &handle) != 0)
    return false;
  std::array<int, kNotes> notes{};
  if (functions_->get(handle, kEngineNotes, kTypeNote, kNotes, &count, notes.data()) != 0)
    return false;
  return std::none_of(notes.begin(), notes.begin() + count, [&](int note) {
    return note == kNondeterministic || note == kNarrowSums || note == kDownConvert ||
           (note == kTensorCore && !tensor_cores);
  });
}

// Tries the heuristics in order of the quality of their plans. `ids` maps the step's (lhs, rhs,
// result) to x = 1, w = 2, y = 3, which depends on the form.
Result<std::shared_ptr<const ProductCode>> Cudnn::Make(const Convolution& c) const {
  const Functions& f = *functions_;
  std::vector<Descriptor> parts;
  TOK_TRY(Descriptor graph, GraphOf(c, parts));
  bool tensor_cores = c.tf32 || c.type != Convolution::Type::kF32;
  int status = 0;
  for (int mode : {kModeB, kModeA, kModeFallback}) {
    Descriptor heuristics(f, kHeuristics);
    heuristics.Set(kHeuristicGraph, graph).SetOne(kHeuristicMode, kTypeHeuristic, mode).Finalize();
    int64_t count = 0;
    status = heuristics.status();
    if (status == 0)
      status = f.get(heuristics.get(), kHeuristicResults, kTypeDescriptor, 0, &count, nullptr);
    if (status != 0) continue;
    std::vector<Descriptor> choices;
    std::vector<Handle> handles;
    for (int64_t i = 0; i < count; ++i)
      handles.push_back(choices.emplace_back(f, kEngineConfig).get());
    status =
        f.get(heuristics.get(), kHeuristicResults, kTypeDescriptor, count, &count, handles.data());
    if (status != 0) continue;
    for (int64_t i = 0; i < count; ++i) {
      const Descriptor& choice = choices[static_cast<size_t>(i)];
      if (!IsFit(choice, tensor_cores)) continue;
      Descriptor plan(f, kPlan);
      plan.SetOne(kPlanHandle, kTypeHandle, handle_).Set(kPlanConfig, choice).Finalize();
      int64_t bytes = 0, one = 0;
      if (plan.status() == 0)
        status = f.get(plan.get(), kPlanWorkspace, kTypeInt64, 1, &one, &bytes);
      if (plan.status() != 0 || status != 0 || bytes > static_cast<int64_t>(kWorkspace)) continue;
      auto code = std::make_shared<Code>(std::move(plan), static_cast<size_t>(bytes), ToString(c));
      using Form = Convolution::Form;
      code->ids = c.form == Form::kForward        ? std::array<int64_t, 3>{1, 2, 3}
                  : c.form == Form::kBackwardData ? std::array<int64_t, 3>{3, 2, 1}
                                                  : std::array<int64_t, 3>{1, 3, 2};
      return std::shared_ptr<const ProductCode>(std::move(code));
    }
  }
  return f.Failed("no engine for " + ToString(c), status);
}

Result<std::shared_ptr<const ProductCode>> Cudnn::Prepare(const Convolution& convolution) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string name = ToString(convolution);
  if (auto found = made_.find(name); found != made_.end()) {
    if (found->second != nullptr) return found->second;
    return MakeError(ErrorCode::kDeviceFault, "cuDNN: no engine for " + name);
  }
  Result<std::shared_ptr<const ProductCode>> made = Make(convolution);
  made_[name] = made.ok() ? made.value() : nullptr;
  return made;
}

size_t Cudnn::WorkspaceOf(const ProductCode& code) {
  return static_cast<const Code&>(code).workspace;
}

Status Cudnn::Run(const ProductCode& product, const ProductArrays& arrays, void* workspace,
                  Handle stream) {
  const auto& code = static_cast<const Code&>(product);
  const Functions& f = *functions_;
  void* pointers[] = {const_cast<void*>(arrays.lhs), const_cast<void*>(arrays.rhs), arrays.result};
  Descriptor pack(f, kVariantPack);
  pack.Set(kPackIds, kTypeInt64, 3, code.ids.data())
      .Set(kPackPointers, kTypePointer, 3, pointers)
      .SetOne(kPackWorkspace, kTypePointer, workspace)
      .Finalize();
  if (pack.status() != 0) return f.Failed(code.label, pack.status());
  std::lock_guard<std::mutex> lock(mutex_);
  int status = stream == stream_ ? 0 : f.set_stream(handle_, stream);
  if (status == 0) stream_ = stream;
  if (status == 0) status = f.execute(handle_, code.plan.get(), pack.get());
  if (status != 0) return f.Failed(code.label, status);
  return Ok();
}

}  // namespace tokamak::cuda
