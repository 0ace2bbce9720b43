#include "support/interned.h"

#include <functional>
#include <mutex>
#include <set>

namespace tokamak {

const std::string& Interned(std::string_view text) {
  static auto* mutex = new std::mutex;
  static auto* texts = new std::set<std::string, std::less<>>;
  std::lock_guard<std::mutex> lock(*mutex);
  auto found = texts->find(text);
  if (found == texts->end()) found = texts->emplace(text).first;
  return *found;
}

}  // namespace tokamak
