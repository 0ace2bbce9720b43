// The code of kernels in a page: {"language", "listing", "compiler", "why_no_listing", "steps",
// "left_out"}. Compiling a kernel takes NVRTC and LLVM some 20 to 500 ms, so only the slowest
// kernels are compiled, and equal ones once.

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/report/listing.h"
#include "driver/report/page_data.h"
#include "driver/report/slowest_steps.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Different kernels whose code a page has, and those of them that are compiled. Chosen: they take
// most of the time of a program, and NVRTC some 2 s in all.
constexpr size_t kMostCodes = 40, kMostListings = 12;
// Bytes of all code in a page, and of one text; the rest of a longer text is left out. Chosen: a
// page of two megabytes still opens at once; 4,000 lines are more than anyone reads.
constexpr size_t kMostCodeBytes = 3 << 19, kMostTextBytes = 160 << 10;
// Kernel IR values of a step that is generated for a page. Chosen: larger ones take seconds.
constexpr size_t kMostGeneratedValues = 20000;
// Bytes of CUDA C++ that NVRTC compiles for a page: of one kernel, and of all. Chosen: the loops of
// examples/ have up to 50 kB, which take 1.1 s; 67 kB of weight updates in one launch take 6 s.
constexpr size_t kMostCudaBytes = 64 << 10, kMostCompiledBytes = 192 << 10;

double MillisOf(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// The first lines of a text, up to kMostTextBytes; the number of lines left out.
std::pair<std::string, int64_t> Shortened(std::string text) {
  if (text.size() <= kMostTextBytes) return {std::move(text), 0};
  size_t end = text.rfind('\n', kMostTextBytes);
  if (end == std::string::npos) end = kMostTextBytes;
  auto rest = text.begin() + static_cast<std::ptrdiff_t>(end) + 1;
  int64_t left = std::count(rest, text.end(), '\n') + (text.back() == '\n' ? 0 : 1);
  text.resize(end + 1);
  return {std::move(text), left};
}

class CodeCollector {
 public:
  CodeCollector(const CompileReport& report, const PageOptions& options)
      : report_(report), most_(options.code ? kMostCodes : 0) {
    if (options.code) compiler_ = ListingCompiler(report.machine().is_gpu(), why_no_listing_);
    because_ = options.code ? fmt::format("a page has the code of the {} slowest kernels, up to {}",
                                          kMostCodes, BytesText(kMostCodeBytes))
                            : "the page was made without code (--no-code)";
  }

  json Run() {
    for (size_t i : SlowestKernelSteps(report_)) Add(i);
    bool is_gpu = report_.machine().is_gpu();
    return {{"language", is_gpu ? "CUDA C++" : "LLVM IR"},
            {"listing", is_gpu ? "PTX" : "assembly"},
            {"compiler", compiler_},
            {"why_no_listing", why_no_listing_},
            {"steps", std::move(steps_)},
            {"left_out", {{"kernels", left_out_}, {"because", because_}}}};
  }

 private:
  void Add(size_t number) {
    const StepReport& step = report_.steps[number];
    auto [at, is_new] = first_.try_emplace(step.code, number);
    if (!is_new) {
      if (steps_.contains(std::to_string(at->second))) steps_[std::to_string(number)] = at->second;
      return;
    }
    if (made_ == most_ || bytes_ >= kMostCodeBytes) {
      ++left_out_;
      return;
    }
    ++made_;
    steps_[std::to_string(number)] = EntryOf(step);
  }

  json EntryOf(const StepReport& step) {
    json entry = json::object();
    size_t values = 0;
    for (size_t kernel : step.kernels) values += report_.program().kernels[kernel].nodes.size();
    if (values > kMostGeneratedValues) {
      entry["why_not"] =
          fmt::format("it has {} kernel IR values, and a page generates those of up to {}", values,
                      kMostGeneratedValues);
      return entry;
    }
    Clock::time_point begin = Clock::now();
    Result<StepCode> code = CodeOfStep(report_, step);
    entry["generate_ms"] = MillisOf(begin);
    if (!code.ok()) {
      entry["why_not"] = code.error().message;
      return entry;
    }
    if (!compiler_.empty()) AddListing(step, code.value(), entry);
    AddText("code", std::move(code.value().text), entry);
    return entry;
  }

  void AddListing(const StepReport& step, const StepCode& code, json& entry) {
    if (listings_ == kMostListings || compiled_bytes_ > kMostCompiledBytes) {
      entry["why_no_listing"] =
          fmt::format("a page compiles the {} slowest kernels, and up to {} of CUDA C++",
                      kMostListings, BytesText(kMostCompiledBytes));
      return;
    }
    if (report_.machine().is_gpu() && code.text.size() > kMostCudaBytes) {
      entry["why_no_listing"] =
          fmt::format("it has {} of CUDA C++, and a page compiles up to {}",
                      BytesText(static_cast<int64_t>(code.text.size())), BytesText(kMostCudaBytes));
      return;
    }
    ++listings_;
    if (report_.machine().is_gpu()) compiled_bytes_ += code.text.size();
    Clock::time_point begin = Clock::now();
    Result<Listing> listing = ListingOf(report_, step, code);
    entry["compile_ms"] = MillisOf(begin);
    if (!listing.ok()) {
      entry["why_no_listing"] = listing.error().message;
      return;
    }
    if (listing.value().registers > 0) {
      entry["registers"] = listing.value().registers;
      entry["spilled_bytes"] = listing.value().spilled_bytes;
    }
    AddText("listing", std::move(listing.value().text), entry);
  }

  void AddText(const std::string& name, std::string text, json& entry) {
    auto [shown, left] = Shortened(std::move(text));
    bytes_ += shown.size();
    entry[name] = std::move(shown);
    if (left > 0) entry[name + "_lines_left_out"] = left;
  }

  const CompileReport& report_;
  size_t most_;
  std::string because_, compiler_, why_no_listing_;
  std::map<uint64_t, size_t> first_;  // step of each code
  json steps_ = json::object();
  size_t made_ = 0, listings_ = 0, compiled_bytes_ = 0, bytes_ = 0, left_out_ = 0;
};

}  // namespace

json KernelCodesOf(const CompileReport& report, const PageOptions& options) {
  return CodeCollector(report, options).Run();
}

}  // namespace tokamak
