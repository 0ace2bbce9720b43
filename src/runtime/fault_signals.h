#pragma once

#include <signal.h>

// Handlers for the signals of a crash: SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT. They are
// installed only while a guarded thread needs them. Signals that are not ours go to the previously
// installed handlers.

namespace tokamak {

// Called in the signal handler, on the thread that receives the signal. Returns if the signal is
// not ours.
using FaultFn = void (*)(int signal);

class FaultSignals {
 public:
  // Installs the handlers; counted, any number of threads may hold them. `own` must be the same for
  // all.
  static void Hold(FaultFn own);
  // The last call restores the previous handlers.
  static void LetGo();
};

// A signal that may be sent to one of our threads to invoke its handler.
inline constexpr int kFaultToSend = SIGBUS;

// Removes these signals from a set.
void RemoveFaults(sigset_t& set);

const char* NameOfFault(int signal);

}  // namespace tokamak
