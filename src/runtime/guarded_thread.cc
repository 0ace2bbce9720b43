// Runs work that may crash, on a thread of its own. A thread that receives a fatal signal cannot be
// unwound or joined: it is parked forever with its stack and locks, and the caller continues.
//
//   kRunning --work returns--> kDone        joined, seat reused
//            --fatal signal--> kCrashed     parked by the signal handler
//            --time limit----> kAbandoned   the caller sends a signal, the handler parks
//
// The first compare-exchange out of kRunning decides. The handler may only call async-signal-safe
// functions: it finds its seat in a lock-free list that only grows, writes the reason into a fixed
// buffer, sets the state and posts a semaphore. `process` is stored with release order after
// `thread`, and loaded with acquire order, so a seat is found only when both are valid. The seat
// and work of a parked thread are never freed, because its stack refers to them.

#include "runtime/guarded_thread.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
#include <vector>

#include "runtime/fault_signals.h"

namespace tokamak {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Bytes. Compilers recurse deeply; untouched pages take no memory. Chosen; no measurement on
// record.
constexpr size_t kStackBytes = size_t{32} << 20;
// Bytes of the alternate signal stack: enough for all registers that the processor saves. Chosen.
constexpr size_t kSignalStackBytes = size_t{64} << 10;
// A running thread receives a signal at once; one that does not is blocked in the kernel. Chosen.
constexpr milliseconds kTimeToPark{5000};
constexpr size_t kReasonBytes = 256;

enum class GuardedState : uint8_t { kRunning, kDone, kCrashed, kAbandoned };

// The record of a guarded thread for the signal handler. Never freed: the handler traverses all
// seats. The seat of a joined thread is reused.
struct Seat {
  std::shared_ptr<GuardedWork> work;
  std::unique_ptr<std::byte[]> signal_stack = std::make_unique<std::byte[]>(kSignalStackBytes);
  std::atomic<pid_t> process{0};  // of the thread; 0: the seat is free
  std::atomic<pthread_t> thread{};
  std::atomic<GuardedState> state{GuardedState::kRunning};
  char reason[kReasonBytes] = {};
  sem_t changed{};  // posted when the state changes or the thread has parked
  Seat* next = nullptr;
};

std::atomic<Seat*> all_seats{nullptr};

class FreeSeats {
 public:
  static FreeSeats& OfProcess() {
    static auto* seats = new FreeSeats;
    return *seats;
  }
  Seat* Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      Seat* seat = free_.back();
      free_.pop_back();
      return seat;
    }
    auto* seat = new Seat;
    seat->next = all_seats.load(std::memory_order_relaxed);
    all_seats.store(seat, std::memory_order_release);
    return seat;
  }
  void Give(Seat* seat) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(seat);
  }

 private:
  std::mutex mutex_;
  std::vector<Seat*> free_;
};

// The seat of this thread; null if it is not guarded. Async-signal-safe, unlike a thread_local of a
// library that was opened at run time.
Seat* OwnSeat() {
  pid_t process = getpid();  // ignores seats inherited from the parent of a fork
  for (Seat* seat = all_seats.load(std::memory_order_acquire); seat != nullptr; seat = seat->next)
    if (seat->process.load(std::memory_order_acquire) == process &&
        pthread_equal(seat->thread.load(std::memory_order_relaxed), pthread_self()) != 0)
      return seat;
  return nullptr;
}

// Parks the thread forever. Signals to the process go to other threads.
[[noreturn]] void ParkThread(Seat& seat, std::string_view why) {
  GuardedState running = GuardedState::kRunning;
  size_t bytes = std::min(why.size(), kReasonBytes - 1);
  if (seat.state.load(std::memory_order_relaxed) == GuardedState::kRunning) {
    std::memcpy(seat.reason, why.data(), bytes);
    seat.reason[bytes] = '\0';
  }
  seat.state.compare_exchange_strong(running, GuardedState::kCrashed, std::memory_order_acq_rel);
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, nullptr);
  sem_post(&seat.changed);
  for (;;) pause();
}

void OnFault(int signal) {
  if (Seat* seat = OwnSeat()) ParkThread(*seat, NameOfFault(signal));
}

void* GuardedMain(void* data) {
  auto* seat = static_cast<Seat*>(data);
  seat->thread.store(pthread_self(), std::memory_order_relaxed);
  seat->process.store(getpid(), std::memory_order_release);
  stack_t stack{}, before{};
  stack.ss_sp = seat->signal_stack.get();
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, &before);
  sigset_t blocked;  // all but faults: Ctrl-C is for the threads of the program
  sigfillset(&blocked);
  RemoveFaults(blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  seat->work->Run();
  GuardedState running = GuardedState::kRunning;
  if (!seat->state.compare_exchange_strong(running, GuardedState::kDone, std::memory_order_acq_rel))
    ParkThread(*seat, "");  // it exceeded its time limit and will not be joined
  sigaltstack(&before, nullptr);
  seat->process.store(0, std::memory_order_release);
  sem_post(&seat->changed);
  return nullptr;
}

bool StartGuarded(Seat& seat, pthread_t& thread) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  bool started = pthread_create(&thread, &attributes, GuardedMain, &seat) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

nanoseconds ProcessorTimeOf(pthread_t thread) {
  clockid_t clock{};
  timespec used{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &used) != 0)
    return nanoseconds{0};
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

// Whether the semaphore was posted within `time`; may return false earlier.
bool WaitUpTo(sem_t& posted, nanoseconds time) {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  int64_t ns = end.tv_nsec + time.count();
  end.tv_sec += ns / kSecond;
  end.tv_nsec = ns % kSecond;
  return sem_timedwait(&posted, &end) == 0;
}

std::string SecondsText(milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

// Returns an empty string if the thread is done or has crashed, else the limit that it has reached.
std::string WaitForEnd(Seat& seat, pthread_t thread, const GuardedLimits& limits) {
  auto begin = std::chrono::steady_clock::now();
  while (seat.state.load(std::memory_order_acquire) == GuardedState::kRunning) {
    nanoseconds processor = limits.processor_time - ProcessorTimeOf(thread);
    nanoseconds wall = limits.wall_time - (std::chrono::steady_clock::now() - begin);
    if (processor.count() <= 0)
      return SecondsText(limits.processor_time) + " of processor time are used up";
    if (wall.count() <= 0) return "it did not end within " + SecondsText(limits.wall_time);
    // It cannot use up its remaining CPU time any earlier.
    if (WaitUpTo(seat.changed, std::min(processor, wall))) break;
  }
  return "";
}

// Whether the thread of an abandoned seat has parked: it will never access anything again.
bool SendToPark(Seat& seat, pthread_t thread) {
  pthread_kill(thread, kFaultToSend);
  auto end = std::chrono::steady_clock::now() + kTimeToPark;
  while (std::chrono::steady_clock::now() < end)
    if (WaitUpTo(seat.changed, milliseconds(100))) return true;
  return false;
}

}  // namespace

// If a limit is reached but the thread ended first, the compare-exchange fails and its own end
// counts. Fault handlers stay installed while an abandoned thread may still run.
std::string RunGuarded(std::shared_ptr<GuardedWork> work, const GuardedLimits& limits) {
  Seat* seat = FreeSeats::OfProcess().Take();
  seat->work = std::move(work);
  seat->state.store(GuardedState::kRunning, std::memory_order_relaxed);
  sem_init(&seat->changed, 0, 0);
  FaultSignals::Hold(OnFault);
  pthread_t thread{};
  if (!StartGuarded(*seat, thread)) {  // no thread could be created: run it unguarded
    FaultSignals::LetGo();
    seat->work->Run();
    seat->work.reset();
    FreeSeats::OfProcess().Give(seat);
    return "";
  }
  std::string reason = WaitForEnd(*seat, thread, limits);
  GuardedState running = GuardedState::kRunning;
  if (!reason.empty() && seat->state.compare_exchange_strong(running, GuardedState::kAbandoned,
                                                             std::memory_order_acq_rel)) {
    // While it may still run, its faults must be handled by us.
    if (SendToPark(*seat, thread)) FaultSignals::LetGo();
    return reason;
  }
  if (seat->state.load(std::memory_order_acquire) == GuardedState::kCrashed) {
    FaultSignals::LetGo();
    return seat->reason;
  }
  pthread_join(thread, nullptr);
  FaultSignals::LetGo();
  sem_destroy(&seat->changed);
  seat->work.reset();
  FreeSeats::OfProcess().Give(seat);
  return "";
}

void AbandonGuardedWork(std::string_view why) {
  if (Seat* seat = OwnSeat()) ParkThread(*seat, why);
}

}  // namespace tokamak
