#pragma once

#include <signal.h>

// Handlers of the signals that end a process by its own fault: SIGSEGV, SIGBUS, SIGILL, SIGFPE and
// SIGABRT. They are installed only while somebody needs them. What was installed before receives
// all signals that are not for us.

namespace tokamak {

// Called in a signal handler, on the thread that receives the signal. Returns when the signal is
// for others.
using FaultFn = void (*)(int signal);

class FaultSignals {
 public:
  // Any number of threads may hold them. `own` is the same for all.
  static void Hold(FaultFn own);
  // The last one who lets them go restores what was there.
  static void LetGo();
};

// A signal that may be sent to a thread of our own to have its handler called.
inline constexpr int kFaultToSend = SIGBUS;

// Takes these signals out of a set.
void RemoveFaults(sigset_t& set);

const char* NameOfFault(int signal);

}  // namespace tokamak
