#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokamak {

// Immutable bytes with shared ownership: a constant's data may be a window into
// the file that it was read from, so reading copies nothing.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, const std::byte* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}
  static Bytes FromVector(std::vector<std::byte> data) {
    auto owned = std::make_shared<const std::vector<std::byte>>(std::move(data));
    return {owned, owned->data(), owned->size()};
  }
  static Bytes FromString(std::string text) {
    auto owned = std::make_shared<const std::string>(std::move(text));
    return {owned, reinterpret_cast<const std::byte*>(owned->data()), owned->size()};
  }
  static Bytes Copy(const void* data, size_t size) {
    auto* begin = static_cast<const std::byte*>(data);
    return FromVector(std::vector<std::byte>(begin, begin + size));
  }

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  Bytes Window(size_t offset, size_t size) const { return {owner_, data_ + offset, size}; }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tokamak
