#include "kernel/sim_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "support/check.h"

namespace tokamak {
namespace {

Bits Fetch(const unsigned char* from, int bytes) {
  Bits bits = 0;
  switch (bytes) {
    case 1:
      return *from;
    case 2:
      std::memcpy(&bits, from, 2);
      break;
    case 4:
      std::memcpy(&bits, from, 4);
      break;
    default:
      std::memcpy(&bits, from, 8);
  }
  return bits;
}

static_assert(std::endian::native == std::endian::little, "Fetch and Put take the low bytes");

void Put(unsigned char* to, int bytes, Bits bits) {
  std::memcpy(to, &bits, static_cast<size_t>(bytes));
}

}  // namespace

SimMemory::SimMemory(const Kernel& kernel, std::span<const SimArgument> arguments,
                     std::span<const uint32_t> copies, uint32_t threads)
    : kernel_(kernel) {
  for (const Array& array : kernel.arrays) {
    ArrayStorage storage;
    storage.bytes = static_cast<int>(BytesOf(array.type));
    storage.copies = copies[arrays_.size()];
    storage.elements = array.size;
    storage.own = array.space == Space::kRegisters;
    arrays_.push_back(storage);
  }
  AddArguments(arguments);
  for (size_t i = arguments.size(); i < arrays_.size(); ++i) {
    ArrayStorage& storage = arrays_[i];
    int64_t count = storage.elements * storage.copies * (storage.own ? threads : 1);
    locals_.emplace_back(static_cast<size_t>(count * storage.bytes));
    storage.data = locals_.back().data();
    storage.tracked = true;
    storage.shared = !storage.own;
    storage.shadow = shadow_.size();
    shadow_.emplace_back();
    shadow_.back().writers.resize(static_cast<size_t>(count));
    shadow_.back().readers.resize(static_cast<size_t>(count));
  }
}

// Overlapping arguments share shadow cells, one for each element of the smallest element size.
void SimMemory::AddArguments(std::span<const SimArgument> arguments) {
  std::vector<size_t> order(arguments.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto begin = [&](size_t i) { return static_cast<unsigned char*>(arguments[i].data); };
  std::ranges::sort(
      order, [&](size_t x, size_t y) { return std::pair(begin(x), x) < std::pair(begin(y), y); });
  for (size_t first = 0; first < order.size();) {
    unsigned char* base = begin(order[first]);
    unsigned char* end = base;
    int unit = 8;
    bool written = false, read = false;
    size_t last = first;
    for (; last < order.size() && (last == first || begin(order[last]) < end); ++last) {
      size_t i = order[last];
      end = std::max(end, begin(i) + arguments[i].elements * arrays_[i].bytes);
      unit = std::min(unit, arrays_[i].bytes);
      written = written || kernel_.arrays[i].access != Access::kRead;
      read = read || kernel_.arrays[i].access != Access::kWrite;
    }
    for (; first < last; ++first) {
      size_t i = order[first];
      ArrayStorage& storage = arrays_[i];
      storage.data = begin(i);
      storage.elements = arguments[i].elements;
      storage.is_argument = true;
      storage.initialized = kernel_.arrays[i].access != Access::kWrite;
      storage.tracked = storage.shared = written;
      storage.shadow = shadow_.size();
      storage.cells_each = storage.bytes / unit;
      storage.cell_offset = (storage.data - base) / unit;
    }
    shadow_.emplace_back();
    if (!written) continue;
    auto cells = static_cast<size_t>((end - base) / unit + 1);
    shadow_.back().writers.resize(cells);
    shadow_.back().readers.resize(read ? cells : 0);
  }
}

int64_t SimMemory::Element(const SimAgent& agent, const ArrayStorage& storage,
                           int64_t index) const {
  if (!storage.own) return index;
  int64_t copy = storage.copies > 1 ? agent.lane : 0;
  return (int64_t{agent.thread} * storage.copies + copy) * storage.elements + index;
}

// "stores to x[3]", or of asynchronous work "starts a copy that stores to x[3]".
std::string SimMemory::NameOf(const SimAgent& agent, uint32_t array, int64_t index,
                              const char* does) const {
  std::string name = fmt::format("{} {}[{}]", does, kernel_.arrays[array].name, index);
  return agent.work == nullptr ? name : fmt::format("starts a {} that {}", agent.work, name);
}

bool SimMemory::Bounds(const SimAgent& agent, uint32_t array, int64_t index, bool store) {
  const ArrayStorage& storage = arrays_[array];
  if (index >= 0 && index < storage.elements) return true;
  error_code_ = ErrorCode::kKernelOutOfBounds;
  error_text_ =
      fmt::format("{}, which has {} elements",
                  NameOf(agent, array, index, store ? "stores to" : "reads"), storage.elements);
  return false;
}

// `mine`: this access. `theirs`: what the other one, of kind `kind`, did to the element.
template <SimOrder Order>
bool SimMemory::Race(const Order& order, const SimAgent& agent, const AccessCell& other,
                     AccessKind kind, const std::string& mine, const char* theirs) {
  std::string who = other.block == kSeveral ? "another block" : order.NameOf(other);
  std::string missing = other.block == agent.block ? order.Missing(other, kind, agent)
                                                   : "without a barrier between them";
  error_code_ = ErrorCode::kKernelRace;
  error_text_ = fmt::format("{}, which {} {} {}", mine, who, theirs, missing);
  return false;
}

template <SimOrder Order>
bool SimMemory::ReadIn(Order& order, const SimAgent& agent, uint32_t array, int64_t index,
                       Bits& value) {
  const ArrayStorage& storage = arrays_[array];
  if (index < 0 || index >= storage.elements) return Bounds(agent, array, index, false);
  int64_t element = Element(agent, storage, index);
  value = Fetch(storage.data + element * storage.bytes, storage.bytes);
  if (!storage.tracked) return true;
  auto at = static_cast<size_t>(storage.cell_offset + element * storage.cells_each);
  const AccessCell& writer = shadow_[storage.shadow].writers[at];
  bool written = storage.is_argument ? writer.block != 0 : writer.block == agent.block;
  if (!written && !storage.initialized) {
    error_code_ = ErrorCode::kKernelUninitialized;
    error_array_ = array;
    error_index_ = index;
    error_text_ = NameOf(agent, array, index, "reads") + ", which is uninitialized";
    return false;
  }
  const AccessCell* other = written ? order.Unordered(writer, AccessKind::kStore, agent) : nullptr;
  if (other != nullptr)
    return Race(order, agent, *other, AccessKind::kStore, NameOf(agent, array, index, "reads"),
                "stored to");
  AccessCell& reader = shadow_[storage.shadow].readers[at];
  if (!storage.is_argument && reader.block != agent.block) reader = {};
  order.NoteRead(reader, agent);
  return true;
}

template <SimOrder Order>
bool SimMemory::StoreIn(Order& order, const SimAgent& agent, uint32_t array, int64_t index,
                        Bits value) {
  const ArrayStorage& storage = arrays_[array];
  if (index < 0 || index >= storage.elements) return Bounds(agent, array, index, true);
  int64_t element = Element(agent, storage, index);
  unsigned char* data = storage.data + element * storage.bytes;
  auto at = static_cast<size_t>(storage.cell_offset + element * storage.cells_each);
  ShadowCells& shadow = shadow_[storage.shadow];
  AccessCell& writer = shadow.writers[at];
  AccessCell unread;
  AccessCell& reader = shadow.readers.empty() ? unread : shadow.readers[at];
  bool written = storage.is_argument ? writer.block != 0 : writer.block == agent.block;
  bool read = storage.is_argument ? reader.block != 0 : reader.block == agent.block;
  if (const AccessCell* other = read ? order.Unordered(reader, AccessKind::kLoad, agent) : nullptr)
    return Race(order, agent, *other, AccessKind::kLoad, NameOf(agent, array, index, "stores to"),
                "read");
  const AccessCell* other = written ? order.Unordered(writer, AccessKind::kStore, agent) : nullptr;
  bool repeats = other != nullptr && order.MayStoreTwice(writer, agent);
  if (other != nullptr && !(repeats && Fetch(data, storage.bytes) == value))
    return Race(order, agent, *other, AccessKind::kStore, NameOf(agent, array, index, "stores to"),
                repeats ? "stored another value to" : "stored to");
  if (read) order.ForgetReads(reader);
  writer = order.CellOf(agent);
  Put(data, storage.bytes, value);
  return true;
}

bool SimMemory::Read(const SimAgent& agent, uint32_t array, int64_t index, Bits& value) {
  return clocks_ == nullptr ? ReadIn(epochs_, agent, array, index, value)
                            : ReadIn(*clocks_, agent, array, index, value);
}

bool SimMemory::Store(const SimAgent& agent, uint32_t array, int64_t index, Bits value) {
  return clocks_ == nullptr ? StoreIn(epochs_, agent, array, index, value)
                            : StoreIn(*clocks_, agent, array, index, value);
}

int64_t SimMemory::CountUnwritten(uint32_t argument) const {
  const ArrayStorage& storage = arrays_[argument];
  if (!storage.is_argument || storage.initialized) return 0;
  int64_t count = 0;
  int64_t size = std::min(storage.elements, kernel_.arrays[argument].size);
  for (int64_t i = 0; i < size; ++i) {
    auto at = static_cast<size_t>(storage.cell_offset + i * storage.cells_each);
    if (shadow_[storage.shadow].writers[at].block == 0) ++count;
  }
  return count;
}

}  // namespace tokamak
