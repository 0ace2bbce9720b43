// Other libraries may install handlers while ours are active, and call ours as the previous ones.
// Then ours can be neither removed nor installed again above theirs: each would call the other
// forever. So there are several handler functions (layers), each with its own previous handler: a
// covered layer stays, and the next one is installed above.

#include "runtime/fault_signals.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace tokamak {
namespace {

constexpr std::array kFaultSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr std::array kFaultNames = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"};
// How often others may cover our handlers. After that ours stay where they are. Chosen; no
// measurement on record.
constexpr size_t kHandlerLayers = 8;

using FaultHandler = void (*)(int, siginfo_t*, void*);

struct FaultActions {
  size_t layer = 0;  // the function to be installed next
  std::array<struct sigaction, kHandlerLayers> below{};
};

std::atomic<FaultFn> own_fault_fn{nullptr};
std::array<FaultActions, kFaultSignals.size()> fault_actions;
std::mutex fault_mutex;
int fault_holders = 0;

size_t NumberOfFault(int signal) {
  for (size_t i = 0; i < kFaultSignals.size(); ++i)
    if (kFaultSignals[i] == signal) return i;
  return 0;
}

void EndByDefault(int signal, bool is_sent) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  // A fault recurs on return; a signal that was sent does not.
  if (is_sent) raise(signal);
}

// Calls the previous handler as the system would have called it.
void CallBelow(struct sigaction& below, int signal, siginfo_t* info, void* context) {
  struct sigaction action = below;
  bool is_sent = info->si_code <= 0;
  if (action.sa_handler == SIG_IGN && is_sent) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
    return EndByDefault(signal, is_sent);
  if ((static_cast<unsigned>(action.sa_flags) & SA_RESETHAND) != 0) {
    below.sa_flags = 0;
    below.sa_handler = SIG_DFL;
  }
  pthread_sigmask(SIG_BLOCK, &action.sa_mask, nullptr);
  if ((action.sa_flags & SA_NODEFER) != 0) {
    sigset_t again;
    sigemptyset(&again);
    sigaddset(&again, signal);
    pthread_sigmask(SIG_UNBLOCK, &again, nullptr);
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

template <size_t layer>
void OnFaultSignal(int signal, siginfo_t* info, void* context) {
  if (FaultFn own = own_fault_fn.load(std::memory_order_relaxed)) own(signal);
  CallBelow(fault_actions[NumberOfFault(signal)].below[layer], signal, info, context);
}

template <size_t... layers>
constexpr std::array<FaultHandler, kHandlerLayers> MakeFaultHandlers(
    std::index_sequence<layers...>) {
  return {OnFaultSignal<layers>...};
}

constexpr std::array<FaultHandler, kHandlerLayers> kFaultHandlers =
    MakeFaultHandlers(std::make_index_sequence<kHandlerLayers>());

// The layer of an action; kHandlerLayers if it is not ours.
size_t LayerOf(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0) return kHandlerLayers;
  for (size_t i = 0; i < kHandlerLayers; ++i)
    if (action.sa_sigaction == kFaultHandlers[i]) return i;
  return kHandlerLayers;
}

void InstallOwn(size_t number) {
  FaultActions& one = fault_actions[number];
  struct sigaction now {};
  if (sigaction(kFaultSignals[number], nullptr, &now) != 0) return;
  if (LayerOf(now) < kHandlerLayers || one.layer == kHandlerLayers) return;
  one.below[one.layer] = now;
  struct sigaction ours {};
  ours.sa_sigaction = kFaultHandlers[one.layer];
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(kFaultSignals[number], &ours, nullptr);
}

void RemoveOwn(size_t number) {
  FaultActions& one = fault_actions[number];
  struct sigaction now {};
  if (sigaction(kFaultSignals[number], nullptr, &now) != 0) return;
  if (size_t layer = LayerOf(now); layer < kHandlerLayers) {
    sigaction(kFaultSignals[number], &one.below[layer], nullptr);
  } else if (one.layer < kHandlerLayers) {
    ++one.layer;  // covered by another handler
  }
}

}  // namespace

void FaultSignals::Hold(FaultFn own) {
  std::lock_guard<std::mutex> lock(fault_mutex);
  own_fault_fn.store(own, std::memory_order_relaxed);
  if (fault_holders++ > 0) return;
  for (size_t i = 0; i < kFaultSignals.size(); ++i) InstallOwn(i);
}

void FaultSignals::LetGo() {
  std::lock_guard<std::mutex> lock(fault_mutex);
  if (--fault_holders > 0) return;
  for (size_t i = 0; i < kFaultSignals.size(); ++i) RemoveOwn(i);
}

void RemoveFaults(sigset_t& set) {
  for (int signal : kFaultSignals) sigdelset(&set, signal);
}

const char* NameOfFault(int signal) {
  return kFaultNames[NumberOfFault(signal)];
}

}  // namespace tokamak
