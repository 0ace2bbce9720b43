#pragma once

#include <chrono>
#include <string>

namespace tokamak {

// Differs between builds of Tokamak: of the file that this code was loaded from, what the linker
// made of its contents (its build id, where it has one), its size and its time, which alone may be
// those of another build's (installers set times).
const std::string& BuildId();

// Lets the pages of the code and constants of the file that this was loaded from go; those that are
// used again come back from the system's cache. Loading has touched half of them for what runs
// once.
void ForgetCode();

// Whoever is told to stop looks soon, unless it is in machine code that takes long (a kernel that
// is a loop) or in a library. That is waited for so long, and then left to itself: nobody who wants
// to end a process should have to wait for it.
inline constexpr std::chrono::milliseconds kStopWait{1000};

// What owns threads and has to end them before the process's static objects go.
class Stoppable {
 public:
  // Ends its threads, waiting at most kStopWait for what they do; called at most once by the guard,
  // and any number of times by others.
  virtual void Stop() = 0;

 protected:
  Stoppable() = default;
  ~Stoppable() = default;
};

// Has Stop() called at exit, unless Unguard came first. The newest is stopped first.
void GuardAtExit(Stoppable* stoppable);
void Unguard(Stoppable* stoppable);

// Whether this process was forked from one in which anything was guarded: the threads are not here.
bool WasForked();

}  // namespace tokamak
