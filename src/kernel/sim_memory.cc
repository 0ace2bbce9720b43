#include "kernel/sim_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "support/check.h"

namespace tokamak {
namespace {

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
    Place place;
    place.bytes = static_cast<int>(BytesOf(array.type));
    place.copies = copies[arrays_.size()];
    place.elements = array.size;
    place.own = array.space == Space::kRegisters;
    arrays_.push_back(place);
  }
  AddArguments(arguments);
  for (size_t i = arguments.size(); i < arrays_.size(); ++i) {
    Place& place = arrays_[i];
    int64_t count = place.elements * place.copies * (place.own ? threads : 1);
    locals_.emplace_back(static_cast<size_t>(count * place.bytes));
    place.data = locals_.back().data();
    place.tracked = true;
    place.shared = !place.own;
    place.group = groups_.size();
    groups_.emplace_back();
    groups_.back().writers.resize(static_cast<size_t>(count));
    groups_.back().readers.resize(static_cast<size_t>(count));
  }
}

// Arguments that overlap share their cells: one for each of the smallest elements among them.
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
      Place& place = arrays_[i];
      place.data = begin(i);
      place.elements = arguments[i].elements;
      place.is_argument = true;
      place.initialized = kernel_.arrays[i].access != Access::kWrite;
      place.tracked = place.shared = written;
      place.group = groups_.size();
      place.cells_each = place.bytes / unit;
      place.cell_offset = (place.data - base) / unit;
    }
    groups_.emplace_back();
    if (!written) continue;
    auto cells = static_cast<size_t>((end - base) / unit + 1);
    groups_.back().writers.resize(cells);
    groups_.back().readers.resize(read ? cells : 0);
  }
}

int64_t SimMemory::Element(const SimAgent& agent, const Place& place, int64_t index) const {
  if (!place.own) return index;
  int64_t copy = place.copies > 1 ? agent.lane : 0;
  return (int64_t{agent.thread} * place.copies + copy) * place.elements + index;
}

bool SimMemory::Bounds(uint32_t array, int64_t index, bool store) {
  const Place& place = arrays_[array];
  if (index >= 0 && index < place.elements) return true;
  fault_ = ErrorCode::kKernelOutOfBounds;
  fault_text_ = fmt::format("{} {}[{}], which has {} elements", store ? "stores to" : "reads",
                            kernel_.arrays[array].name, index, place.elements);
  return false;
}

bool SimMemory::Unordered(const Cell& cell, const SimAgent& agent) {
  if (cell.team != agent.team) return true;
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

// Keeps the last reader, or that there were several since the last barrier.
void SimMemory::NoteRead(Cell& cell, const SimAgent& agent) {
  Cell now{agent.team, agent.thread, agent.block_epoch, agent.warp_epoch, agent.run, agent.lane};
  if (cell.team == 0) {
    cell = now;
    return;
  }
  if (cell.team != agent.team) {
    cell.team = kSeveral;
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
  std::string who = "another team";
  if (other.team != kSeveral) {
    who = fmt::format("team {}", other.team - 1);
    if (other.thread == kSeveral || (other.thread & kOfWarp) != 0) {
      who = "other threads";
    } else {
      who += fmt::format(", thread {}", other.thread);
      if (other.run != 0 && other.lane != kAllLanes) who += fmt::format(", lane {}", other.lane);
    }
  }
  fault_ = ErrorCode::kKernelRace;
  fault_text_ = fmt::format("{} {}[{}], which {} {} with no order between them", mine,
                            kernel_.arrays[array].name, index, who, theirs);
  return false;
}

bool SimMemory::Read(const SimAgent& agent, uint32_t array, int64_t index, Bits& value) {
  const Place& place = arrays_[array];
  if (index < 0 || index >= place.elements) return Bounds(array, index, false);
  int64_t element = Element(agent, place, index);
  value = Fetch(place.data + element * place.bytes, place.bytes);
  if (!place.tracked) return true;
  auto at = static_cast<size_t>(place.cell_offset + element * place.cells_each);
  const Cell& writer = groups_[place.group].writers[at];
  bool written = place.is_argument ? writer.team != 0 : writer.team == agent.team;
  if (!written && !place.initialized) {
    fault_ = ErrorCode::kKernelUninitialized;
    fault_text_ =
        fmt::format("reads {}[{}], to which nothing was stored", kernel_.arrays[array].name, index);
    return false;
  }
  if (written && Unordered(writer, agent)) return Race(array, index, writer, "reads", "stored to");
  Cell& reader = groups_[place.group].readers[at];
  if (!place.is_argument && reader.team != agent.team) reader = {};
  NoteRead(reader, agent);
  return true;
}

bool SimMemory::Store(const SimAgent& agent, uint32_t array, int64_t index, Bits value) {
  const Place& place = arrays_[array];
  if (index < 0 || index >= place.elements) return Bounds(array, index, true);
  int64_t element = Element(agent, place, index);
  unsigned char* data = place.data + element * place.bytes;
  auto at = static_cast<size_t>(place.cell_offset + element * place.cells_each);
  Group& group = groups_[place.group];
  Cell& writer = group.writers[at];
  const Cell reader = group.readers.empty() ? Cell{} : group.readers[at];
  bool written = place.is_argument ? writer.team != 0 : writer.team == agent.team;
  bool read = place.is_argument ? reader.team != 0 : reader.team == agent.team;
  if (read && Unordered(reader, agent)) return Race(array, index, reader, "stores to", "read");
  if (written && Unordered(writer, agent) && Fetch(data, place.bytes) != value)
    return Race(array, index, writer, "stores to", "stored another value to");
  writer = {agent.team, agent.thread, agent.block_epoch, agent.warp_epoch, agent.run, agent.lane};
  Put(data, place.bytes, value);
  return true;
}

int64_t SimMemory::Unwritten(uint32_t argument) const {
  const Place& place = arrays_[argument];
  if (!place.is_argument || place.initialized) return 0;
  int64_t count = 0;
  int64_t size = std::min(place.elements, kernel_.arrays[argument].size);
  for (int64_t i = 0; i < size; ++i) {
    auto at = static_cast<size_t>(place.cell_offset + i * place.cells_each);
    if (groups_[place.group].writers[at].team == 0) ++count;
  }
  return count;
}

}  // namespace tokamak
