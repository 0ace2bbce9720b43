#include "interp/host.h"

#include <filesystem>
#include <system_error>

#include "support/error.h"

namespace tokamak {

Host::~Host() {
  std::error_code ignored;
  if (own_dir_) std::filesystem::remove_all(probe_dir_, ignored);
}

void Host::Feed(Value value) {
  std::lock_guard<std::mutex> lock(mutex_);
  feed_.push_back(std::move(value));
}

bool Host::HasFeed() {
  std::lock_guard<std::mutex> lock(mutex_);
  return !feed_.empty();
}

Result<Value> Host::TakeFeed() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (feed_.empty())
    return MakeError(ErrorCode::kInfeedEmpty, "infeed: the host has given all that it had");
  Value value = std::move(feed_.front());
  feed_.pop_front();
  return value;
}

}  // namespace tokamak
