#pragma once

#include <atomic>
#include <span>
#include <string>

// The interface of runtime routines that are not generated kernels.
namespace tokamak {

// A routine of the runtime that is not a kernel, such as a sort. Distributes its work over the
// threads of the process; results do not depend on their number.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  // `arguments`: operands, results, then scratch memory of ScratchBytes() bytes if that is not 0.
  // May leave the results unfinished once `stop` (may be null) is true. Thread-safe.
  virtual void Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const = 0;
  virtual int64_t ScratchBytes() const = 0;
  // "sort f32 3 x 17 by 1 key"
  virtual std::string Text() const = 0;
  // Estimated run time on one thread, in microseconds.
  virtual double Micros() const = 0;
};

}  // namespace tokamak
