#include "interp/host.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "support/error.h"

namespace tokamak {
namespace {

// NumPy's name of an element type; types that NumPy lacks are written as unsigned integers.
std::string NpyType(ElementType type) {
  int bytes = BytesOf(type);
  std::string order = bytes == 1 ? "|" : "<";
  bool native = type == ElementType::kF16 || type == ElementType::kF32 || type == ElementType::kF64;
  switch (KindOf(type)) {
    case TypeKind::kBool:
      return "|b1";
    case TypeKind::kSigned:
      return order + (InfoOf(type).bits < 8 ? "u" : "i") + std::to_string(bytes);
    case TypeKind::kUnsigned:
      return order + "u" + std::to_string(bytes);
    case TypeKind::kReal:
      return order + (native ? "f" : "u") + std::to_string(bytes);
    case TypeKind::kComplex:
      return order + "c" + std::to_string(bytes);
  }
  return "";
}

// The header of an .npy file (version 1.0).
std::string NpyHeader(const Shape& shape) {
  std::string dims;
  for (int64_t dim : shape.dims()) dims += std::to_string(dim) + ", ";
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.pop_back();
  std::string dict = "{'descr': '" + NpyType(shape.type()) +
                     "', 'fortran_order': False, 'shape': (" + dims + "), }";
  size_t length = (10 + dict.size() + 1 + 63) / 64 * 64 - 10;
  dict.resize(length - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(length & 0xff);
  header += static_cast<char>(length >> 8);
  return header + dict;
}

std::string ElementBytes(const Value& value) {
  Literal literal = LiteralFromValue(value);
  std::string one(literal.data().text());
  if (!literal.is_splat()) return one;
  std::string all;
  for (int64_t i = 0; i < value.ElementCount(); ++i) all += one;
  return all;
}

Error ProbeError(const std::string& what, const std::string& path) {
  return MakeError(ErrorCode::kProbeUnreadable, "probe: " + what + " '" + path + "'");
}

}  // namespace

Host::~Host() {
  std::error_code ignored;
  if (own_dir_) std::filesystem::remove_all(probe_dir_, ignored);
}

void Host::Feed(Value value) {
  std::lock_guard<std::mutex> lock(mutex_);
  feed_.push_back(std::move(value));
}

Result<Value> Host::TakeFeed() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (feed_.empty()) return MakeError(ErrorCode::kInfeedEmpty, "infeed: the host has no more data");
  Value value = std::move(feed_.front());
  feed_.pop_front();
  return value;
}

void Host::Post(int64_t channel, std::vector<Value> values) {
  std::lock_guard<std::mutex> lock(mutex_);
  channels_[channel].push_back(std::move(values));
}

Result<std::vector<Value>> Host::Take(int64_t channel) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::deque<std::vector<Value>>& queue = channels_[channel];
  if (queue.empty()) {
    return MakeError(ErrorCode::kInfeedEmpty,
                     "recv: nothing was sent to channel " + std::to_string(channel));
  }
  std::vector<Value> values = std::move(queue.front());
  queue.pop_front();
  return values;
}

Result<std::string> Host::ProbePath(const std::string& id, int64_t iteration) {
  std::error_code error;
  if (probe_dir_.empty()) {
    std::filesystem::path base = std::filesystem::temp_directory_path(error);
    std::string pattern = (base / "tokamak-probe-XXXXXX").string();
    if (error || mkdtemp(pattern.data()) == nullptr)
      return ProbeError("cannot create a temporary folder in", base.string());
    probe_dir_ = pattern;
    own_dir_ = true;
  }
  std::string name = id;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  return probe_dir_ + "/" + name + "_" + std::to_string(iteration) + ".npy";
}

Status Host::WriteProbe(const std::string& id, const Value& value) {
  std::lock_guard<std::mutex> lock(mutex_);
  TOK_TRY(std::string path, ProbePath(id, probe_counts_[id]++));
  std::ofstream file(path, std::ios::binary);
  std::string bytes = NpyHeader(value.shape()) + ElementBytes(value);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return ProbeError("cannot write", path);
  return Ok();
}

Result<Value> Host::ReadProbe(const std::string& id, int64_t iteration, const Shape& shape) {
  std::lock_guard<std::mutex> lock(mutex_);
  TOK_TRY(std::string path, ProbePath(id, iteration));
  std::ifstream file(path, std::ios::binary);
  if (!file) return ProbeError("cannot read", path);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string header = NpyHeader(shape);
  size_t size = static_cast<size_t>(shape.ByteSize());
  if (bytes.size() != header.size() + size || bytes.compare(0, header.size(), header) != 0)
    return ProbeError("not an array of " + ToString(shape) + ":", path);
  return ValueFromLiteral(Literal::Array(shape, Bytes::Copy(bytes.data() + header.size(), size)));
}

void Host::Print(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tokamak
