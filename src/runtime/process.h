#pragma once

#include <string>

namespace tokamak {

// Differs between builds of Tokamak: the file that this code was loaded from, its size and time.
const std::string& BuildId();

// Lets the pages of the code and constants of the file that this was loaded from go; those that are
// used again come back from the system's cache. Loading has touched half of them for what runs
// once.
void ForgetCode();

// What owns threads and has to end them before the process's static objects go.
class Stoppable {
 public:
  // Ends and joins its threads; called at most once by the guard, and any number of times by
  // others.
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
