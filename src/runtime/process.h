#pragma once

#include <chrono>
#include <string>

// The process: build identity, and the orderly end of threads at exit.
namespace tokamak {

// Identifies the build of Tokamak: the build ID of the file that this code was loaded from (a hash
// by the linker, if present), its size and its time. Size and time alone may equal those of another
// build, because installers set times.
const std::string& BuildId();

// Releases the resident pages of this file's code and constants. Pages in use come back from the
// page cache; loading has touched half of them for code that runs once.
void ForgetCode();

// Threads that are asked to stop check soon, unless they run long machine code (a whole-loop
// kernel) or a library. Those are given this long, then detached, so that they do not delay the
// exit of the process. Chosen; no measurement on record.
inline constexpr std::chrono::milliseconds kStopWait{1000};

// An owner of threads that must end before the process's static objects are destroyed.
class Stoppable {
 public:
  // Ends its threads, waiting at most kStopWait for running work. The exit guard calls it at most
  // once, other callers any number of times.
  virtual void Stop() = 0;

 protected:
  Stoppable() = default;
  ~Stoppable() = default;
};

// Calls Stop() at exit unless Unguard was called; in reverse order of registration.
void GuardAtExit(Stoppable* stoppable);
void Unguard(Stoppable* stoppable);

// Whether this process was forked from one in which anything was guarded: it lacks the threads.
bool WasForked();

}  // namespace tokamak
