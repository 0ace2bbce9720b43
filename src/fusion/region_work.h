#pragma once

// The work of a region, estimated from its instructions without building a kernel. This is the
// first of the two cost levels (plan.h).

#include <array>
#include <vector>

#include "cost/work.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// Threads per block of a GPU kernel that does not exist yet. Measured: the median and both
// quartiles of the 899 kernels of 30 programs of bench/ and examples/ for an H200.
inline constexpr double kTypicalThreads = 256;
// Registers per thread of such a kernel. Chosen: few, so that the estimate assumes that occupancy
// does not limit it. The same kernels have 80 in the median.
inline constexpr double kTypicalThreadRegisters = 40;

// Operations of one execution pipe. Vectors of PipeOps list the pipes whose count is not zero.
struct PipeOps {
  size_t pipe;  // index into Work::ops, a Pipe (cost/work.h)
  double count;
};

// Estimates the work of regions. The planner calls it for every move that it considers, so
// everything that depends on one instruction alone is computed once.
//
// A walk from the roots to the inputs counts the evaluations of each instruction, as a total over
// all its elements. The count is that of its user, or follows from it at another rate if the user
// reduces, broadcasts or moves elements (EvaluationRate). From the counts follow
//
//   operations     evaluations * operations per evaluation, and those of loads and stores. A load
//                  or store of one element is a fraction of a vector operation on a CPU
//   bytes read     of each input, bytes * min(1, loads / elements): repeated loads are cache hits
//                  and count once; elements that are never loaded do not count
//   bytes written  of each root, all its bytes; of a partial update, only the updated ones
class RegionWorkEstimator {
 public:
  RegionWorkEstimator(const Computation& computation, const Machine& machine)
      : machine_(machine), instr_work_(computation) {}
  RegionWorkEstimator(const RegionWorkEstimator&) = delete;
  RegionWorkEstimator& operator=(const RegionWorkEstimator&) = delete;

  Work EstimateWork(const FusedRegion& region);

 private:
  struct InstrWork;
  // How often an operand is evaluated if its user is evaluated n times. `factor` is Use::factor.
  //
  // Users share the evaluations of the first four, so the largest count of any user applies. The
  // first three evaluate the operand at an index that the user's index determines in the same way
  // for all users. For kFixed, sharing is an assumption. The last two evaluate it at other indices,
  // which users do not share, so counts are added.
  enum class EvaluationRate : uint8_t {
    kSame,               // n times (elementwise)
    kBroadcast,          // n / factor, but min(n, elements of the operand) at least: one evaluation
                         // serves `factor` adjacent elements of a broadcast
    kPerReducedElement,  // n * elements of the operand per element of the user (reduce)
    kFixed,              // `factor` times, independent of n (scatter, sort, packed dot operands)
    kOtherIndices,       // n * factor times, at other indices (windows, dots, other data movement)
    kSubset              // n times the operand's share of the user's elements, at other indices
                         // (concatenate, pad)
  };
  struct Use {
    InstrWork* operand;
    EvaluationRate rate;
    double factor;
    double user_elements;  // number of elements of the user
    // kFixed: evaluations if the operand is a view of an input of the region that the bulk copy
    // engine reads; 0 if it is no such view.
    double window = 0;
  };
  struct InstrWork {
    // In the current region: evaluations (of an input: loads) that all users share, and those that
    // they do not share. See EvaluationRate.
    double shared_evals = 0, unshared_evals = 0;

    // Of the instruction alone. First stage, ComputeCounts:
    double elements = -1;  // of the first array of the result, at least 1; < 0: not computed yet
    double bytes = 0;      // of all arrays of the result
    // Second stage, ComputeUses:
    bool uses_computed = false;          // the second stage is done
    double reduced_elements = 1;         // operand elements per result element, for a reduce
    std::vector<Use> operand_uses = {};  // one per operand
    std::vector<PipeOps> ops_per_element = {};

    double evals() const { return shared_evals + unshared_evals; }
  };
  // With the first stage computed.
  InstrWork& InstrWorkOf(const Instr& instr) {
    InstrWork& instr_work = instr_work_[&instr];
    if (instr_work.elements < 0) ComputeCounts(instr, instr_work);
    return instr_work;
  }
  // With both stages computed.
  InstrWork& FullInstrWorkOf(const Instr& instr) {
    InstrWork& instr_work = InstrWorkOf(instr);
    if (!instr_work.uses_computed) ComputeUses(instr, instr_work);
    return instr_work;
  }
  void ComputeCounts(const Instr& instr, InstrWork& instr_work);
  void ComputeUses(const Instr& instr, InstrWork& instr_work);
  double ElementsOf(const Instr& instr) { return InstrWorkOf(instr).elements; }
  Use UseOf(const Instr& instr, size_t operand);
  // Computes shared_evals and unshared_evals of all instructions and inputs.
  bool ReadsWindow(const FusedRegion& region, const Instr& dot, const Use& use);
  void CountEvaluations(const FusedRegion& region);
  void AddStoresOf(const Instr& root, Work& work);
  enum class Access : uint8_t { kLoad, kStore };
  // Adds the operations that load or store elements.
  void AddAccess(Access access, ElementType type, double elements, Work& work);

  const Machine& machine_;
  InstrMap<InstrWork> instr_work_;
  struct AccessOps {
    std::vector<PipeOps> ops;
    bool is_computed = false;
  };
  std::vector<std::array<AccessOps, 2>> accesses_;  // operations per element, by type and access
};

}  // namespace tokamak
