#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "runtime/worker.h"

namespace tokamak {
namespace {

// Pieces a thread, so that one that began late or runs slowly leaves the rest to others.
constexpr int64_t kPiecesPerThread = 4;

// Outlives the call: a helper that comes too late looks at it and goes.
struct Shared {
  RangeWork work;
  int64_t count = 0, piece = 1, pieces = 1;
  std::atomic<int64_t> next{0}, done{0};

  void Help() {
    while (true) {
      int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= pieces) return;
      work.run(work.user, i * piece, std::min(count, (i + 1) * piece));
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces) done.notify_all();
    }
  }
};

class Helper final : public Task {
 public:
  explicit Helper(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  void Run(bool stopped) override {
    if (!stopped) shared_->Help();
    delete this;
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

void ParallelRange(int64_t count, int64_t grain, RangeWork work) {
  int64_t threads = std::min<int64_t>(Pool().threads(), count / std::max<int64_t>(grain, 1));
  if (threads <= 1) {
    if (count > 0) work.run(work.user, 0, count);
    return;
  }
  auto shared = std::make_shared<Shared>();
  shared->work = work;
  shared->count = count;
  shared->piece = std::max(grain, (count + threads * kPiecesPerThread - 1) /
                                      (threads * kPiecesPerThread));
  shared->pieces = (count + shared->piece - 1) / shared->piece;
  for (int64_t i = 1; i < threads; ++i) Pool().Post(new Helper(shared));
  shared->Help();
  for (int64_t done = shared->done.load(std::memory_order_acquire); done < shared->pieces;
       done = shared->done.load(std::memory_order_acquire))
    shared->done.wait(done, std::memory_order_acquire);
}

}  // namespace tokamak
