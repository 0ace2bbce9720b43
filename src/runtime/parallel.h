#pragma once

#include <cstdint>

namespace tokamak {

// A range of work as a plain function: `run(user, begin, end)`.
struct RangeWork {
  void (*run)(const void* user, int64_t begin, int64_t end) = nullptr;
  const void* user = nullptr;
};

// Runs 0 .. count - 1, cut into pieces of at least `grain`, on the threads of the pool and on this
// one, which takes part and returns when all is done. Never waits for a thread that has not begun:
// a busy pool costs time, not progress.
void ParallelRange(int64_t count, int64_t grain, RangeWork work);

template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  ParallelRange(count, grain,
                {[](const void* user, int64_t begin, int64_t end) {
                   (*static_cast<const Body*>(user))(begin, end);
                 },
                 &body});
}

}  // namespace tokamak
