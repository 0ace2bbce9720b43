#include "kernel/sim_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "support/check.h"

namespace tokamak {
namespace {

// Values of Cell::block and Cell::thread: several blocks or threads; a flag that marks a warp
// number.
constexpr uint32_t kSeveral = UINT32_MAX, kOfWarp = uint32_t{1} << 31;

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

bool SimMemory::Bounds(uint32_t array, int64_t index, bool store) {
  const ArrayStorage& storage = arrays_[array];
  if (index >= 0 && index < storage.elements) return true;
  error_code_ = ErrorCode::kKernelOutOfBounds;
  error_text_ = fmt::format("{} {}[{}], which has {} elements", store ? "stores to" : "reads",
                            kernel_.arrays[array].name, index, storage.elements);
  return false;
}

bool SimMemory::Unordered(const Cell& cell, const SimAgent& agent) {
  if (cell.block != agent.block) return true;
  if (cell.thread == agent.thread)
    return cell.run != 0 && cell.run == agent.run &&
           (cell.lane != agent.lane || agent.lane == kAllLanes);
  bool same_warp = false;
  if (cell.thread == kSeveral) {
    same_warp = false;
  } else if ((cell.thread & kOfWarp) != 0) {
    same_warp = (cell.thread & ~kOfWarp) == agent.warp;
  } else {
    same_warp = cell.thread / kSimWarp == agent.warp;
  }
  return same_warp ? cell.warp_epoch == agent.warp_epoch : cell.block_epoch == agent.block_epoch;
}

// Records the last reader, or that several agents have read since the last barrier.
void SimMemory::NoteRead(Cell& cell, const SimAgent& agent) {
  Cell now{agent.block, agent.thread, agent.block_epoch, agent.warp_epoch, agent.run, agent.lane};
  if (cell.block == 0) {
    cell = now;
    return;
  }
  if (cell.block != agent.block) {
    cell.block = kSeveral;
    return;
  }
  if (cell.thread == agent.thread) {
    if (cell.run == agent.run && cell.lane != agent.lane) now.lane = kAllLanes;
  } else if (cell.block_epoch == agent.block_epoch) {
    bool of_warp = (cell.thread & kOfWarp) != 0;
    uint32_t warp = of_warp ? cell.thread & ~kOfWarp : cell.thread / kSimWarp;
    if (cell.thread == kSeveral || warp != agent.warp) {
      now.thread = kSeveral;
    } else if (cell.warp_epoch == agent.warp_epoch) {
      now.thread = kOfWarp | agent.warp;
    }
  }
  cell = now;
}

bool SimMemory::Race(uint32_t array, int64_t index, const Cell& other, const char* mine,
                     const char* theirs) {
  std::string who = "another block";
  if (other.block != kSeveral) {
    who = fmt::format("block {}", other.block - 1);
    if (other.thread == kSeveral || (other.thread & kOfWarp) != 0) {
      who = "other threads";
    } else {
      who += fmt::format(", thread {}", other.thread);
      if (other.run != 0 && other.lane != kAllLanes) who += fmt::format(", lane {}", other.lane);
    }
  }
  error_code_ = ErrorCode::kKernelRace;
  error_text_ = fmt::format("{} {}[{}], which {} {} without a barrier between them", mine,
                            kernel_.arrays[array].name, index, who, theirs);
  return false;
}

bool SimMemory::Read(const SimAgent& agent, uint32_t array, int64_t index, Bits& value) {
  const ArrayStorage& storage = arrays_[array];
  if (index < 0 || index >= storage.elements) return Bounds(array, index, false);
  int64_t element = Element(agent, storage, index);
  value = Fetch(storage.data + element * storage.bytes, storage.bytes);
  if (!storage.tracked) return true;
  auto at = static_cast<size_t>(storage.cell_offset + element * storage.cells_each);
  const Cell& writer = shadow_[storage.shadow].writers[at];
  bool written = storage.is_argument ? writer.block != 0 : writer.block == agent.block;
  if (!written && !storage.initialized) {
    error_code_ = ErrorCode::kKernelUninitialized;
    error_text_ =
        fmt::format("reads {}[{}], which is uninitialized", kernel_.arrays[array].name, index);
    return false;
  }
  if (written && Unordered(writer, agent)) return Race(array, index, writer, "reads", "stored to");
  Cell& reader = shadow_[storage.shadow].readers[at];
  if (!storage.is_argument && reader.block != agent.block) reader = {};
  NoteRead(reader, agent);
  return true;
}

bool SimMemory::Store(const SimAgent& agent, uint32_t array, int64_t index, Bits value) {
  const ArrayStorage& storage = arrays_[array];
  if (index < 0 || index >= storage.elements) return Bounds(array, index, true);
  int64_t element = Element(agent, storage, index);
  unsigned char* data = storage.data + element * storage.bytes;
  auto at = static_cast<size_t>(storage.cell_offset + element * storage.cells_each);
  ShadowCells& shadow = shadow_[storage.shadow];
  Cell& writer = shadow.writers[at];
  const Cell reader = shadow.readers.empty() ? Cell{} : shadow.readers[at];
  bool written = storage.is_argument ? writer.block != 0 : writer.block == agent.block;
  bool read = storage.is_argument ? reader.block != 0 : reader.block == agent.block;
  if (read && Unordered(reader, agent)) return Race(array, index, reader, "stores to", "read");
  if (written && Unordered(writer, agent) && Fetch(data, storage.bytes) != value)
    return Race(array, index, writer, "stores to", "stored another value to");
  writer = {agent.block, agent.thread, agent.block_epoch, agent.warp_epoch, agent.run, agent.lane};
  Put(data, storage.bytes, value);
  return true;
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
