#pragma once

#include <atomic>
#include <span>
#include <string>

namespace tokamak {

// What a function of our own does to arrays, being no kernel: a sort. Shares out its work among the
// threads of the process; values do not depend on how many there are.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  // Operands, results, then memory to work in of ScratchBytes(), if that is any. May leave the
  // results unfinished once `stop` is true (may be null). Called by several threads at a time.
  virtual void Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const = 0;
  virtual int64_t ScratchBytes() const = 0;
  // "sort f32 3 x 17 by 1 key"
  virtual std::string Text() const = 0;
  // What a run takes, roughly, on one thread.
  virtual double Micros() const = 0;
};

}  // namespace tokamak
