// The kernels of native/cuda for one set of macros, on a CPU.
#include "emulate.hpp"

#include "chains.cu"
#include "clock.cu"
#include "evaluate.cu"
#include "improve.cu"
#include "keep.cu"
#include "regions.cu"

// Returns 0, or 1 if there is no such kernel. Arguments are numbers and addresses.
extern "C" __attribute__((visibility("default"))) int emulate(const char* name, int grid, int threads, unsigned shared,
                                                              const unsigned long long* words) {
#define NDS_KERNEL(kernel) \
  if (!std::strcmp(name, #kernel)) return launch(kernel, grid, threads, shared, words), 0
  NDS_KERNEL(start_chains);
  NDS_KERNEL(view_chains);
  NDS_KERNEL(choose_sources);
  NDS_KERNEL(replace_chains);
  NDS_KERNEL(export_chain);
  NDS_KERNEL(evaluate_rollouts);
  NDS_KERNEL(improve_chains);
  NDS_KERNEL(keep_best);
  NDS_KERNEL(split_chains);
  NDS_KERNEL(merge_parts);
  NDS_KERNEL(read_clock);
  return 1;
}
