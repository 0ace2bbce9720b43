#include "cost/reuse.h"

#include <algorithm>
#include <unordered_map>

#include "cost/rates.h"

namespace tokamak {
namespace {

// Kernels with more accesses are not analyzed for reuse. Chosen: the analysis is quadratic.
constexpr size_t kMostAccesses = 512;

class ReuseTraffic {
 public:
  ReuseTraffic(Work& work, const Kernel& kernel, const std::vector<ArrayAccess>& accesses,
               const Machine& machine)
      : work_(work), kernel_(kernel), accesses_(accesses), rates_(RatesOf(machine)) {}

  void Add() {
    std::vector<double> read(kernel_.arrays.size()), written(kernel_.arrays.size());
    for (const ArrayAccess& access : accesses_) {
      if (!IsArgument(access)) continue;
      (access.is_store ? written : read)[Number(access)] += BytesWithin(access, 0);
      double run = access.run * static_cast<double>(BytesOf(kernel_.array(access.array).type));
      if (run < kLongRun && SizeOf(Number(access)) > rates_.l2_bytes)
        work_.lines += BytesWithin(access, 0) / run;
      if (access.sector_fraction < 1)
        work_.memory_rereads += BytesWithin(access, 0) * (1 / access.sector_fraction - 1);
      if (!access.is_store && accesses_.size() <= kMostAccesses) AddReuse(access);
    }
    for (size_t i = 0; i < kernel_.ArgumentCount(); ++i) {
      double size = SizeOf(i);
      work_.reads += std::min(read[i], size);
      work_.writes += std::min(written[i], size);
      if (read[i] > size && accesses_.size() <= kMostAccesses)
        AddReread(read[i] - size, BetweenStatements(ArrayId{static_cast<uint32_t>(i)}));
    }
  }

 private:
  static size_t Number(const ArrayAccess& access) { return static_cast<size_t>(access.array); }
  bool IsArgument(const ArrayAccess& access) const {
    return kernel_.array(access.array).space == Space::kArgument;
  }
  double SizeOf(size_t array) const {
    const Array& a = kernel_.arrays[array];
    return static_cast<double>(a.size) * static_cast<double>(BytesOf(a.type));
  }

  // Bytes that an access touches in one iteration of the loops before number `first` (outermost is
  // 0).
  double BytesWithin(const ArrayAccess& access, size_t first) const {
    double count = access.block;
    for (size_t i = first; i < access.loops.size(); ++i)
      if (access.loops[i].moves) count *= access.loops[i].trips;
    double bytes = count * static_cast<double>(BytesOf(kernel_.array(access.array).type));
    return std::min(bytes, SizeOf(Number(access)));
  }

  // Bytes that one iteration of a loop touches.
  double Footprint(LoopId loop, size_t depth) {
    auto found = footprints_.find(static_cast<uint32_t>(loop));
    if (found != footprints_.end()) return found->second;
    std::vector<double> bytes(kernel_.arrays.size());
    for (const ArrayAccess& access : accesses_)
      if (access.loops.size() > depth && access.loops[depth].loop == loop)
        bytes[Number(access)] += BytesWithin(access, depth + 1);
    double sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i) sum += std::min(bytes[i], SizeOf(i));
    footprints_[static_cast<uint32_t>(loop)] = sum;
    return sum;
  }

  void AddReread(double bytes, double distance) {
    if (distance <= rates_.l1_bytes * kL1Fraction) return;
    (distance <= rates_.l2_bytes * kL1Fraction ? work_.rereads : work_.memory_rereads) += bytes;
  }

  // Rereads of the same elements in every iteration of a loop that the index does not depend on.
  void AddReuse(const ArrayAccess& access) {
    double outer = 1;
    for (size_t i = 0; i < access.loops.size(); ++i) {
      const ArrayAccess::Around& around = access.loops[i];
      if (!around.moves && around.trips > 1)
        AddReread(outer * (around.trips - 1) * BytesWithin(access, i + 1),
                  Footprint(around.loop, i));
      outer *= around.trips;
    }
  }

  // Reuse distance between two statements that read one array: the footprint of an iteration of
  // their innermost common loop.
  double BetweenStatements(ArrayId array) {
    const ArrayAccess* last = nullptr;
    double most = 0;
    for (const ArrayAccess& access : accesses_) {
      if (access.array != array || access.is_store) continue;
      if (last != nullptr) {
        size_t shared = 0;
        while (shared < std::min(last->loops.size(), access.loops.size()) &&
               last->loops[shared].loop == access.loops[shared].loop)
          ++shared;
        most = std::max(most,
                        shared == 0 ? All() : Footprint(access.loops[shared - 1].loop, shared - 1));
      }
      last = &access;
    }
    return most;
  }
  double All() const {
    double sum = 0;
    for (size_t i = 0; i < kernel_.ArgumentCount(); ++i) sum += SizeOf(i);
    return sum;
  }

  // Usable fraction of a cache. Chosen: other arrays and imperfect replacement take the rest.
  static constexpr double kL1Fraction = 0.75;
  // Bytes: a contiguous run of this length counts as sequential. Chosen: from some 16 lines on, the
  // hardware prefetcher keeps up.
  static constexpr double kLongRun = 1024;
  Work& work_;
  const Kernel& kernel_;
  const std::vector<ArrayAccess>& accesses_;
  const Rates& rates_;
  std::unordered_map<uint32_t, double> footprints_;
};

}  // namespace

void AddTraffic(Work& work, const Kernel& kernel, const std::vector<ArrayAccess>& accesses,
                const Machine& machine) {
  ReuseTraffic(work, kernel, accesses, machine).Add();
}

}  // namespace tokamak
