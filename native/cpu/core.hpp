// The interface of a build of the core: functions over plain data, one table per instruction set.
#pragma once
#include "ndsvrp/state.hpp"

namespace nds {

struct Core {
  const char* name;
  i32 teams;  // every call gets a workspace for each of them
  i32 (*improve)(const Instance&, Chain&, Workspace*, const Recipe&, const i32* given, const double* temperature,
                 i32 from, i32 to, u64 key, const volatile i32* stop);
  i64 (*evaluate)(const Instance&, Chain&, Workspace*, const Recipe&, const i32* given, i32 k, u64 key, bool keep,
                  const volatile i32* stop);
  // Make a part of a solution, in one of so many regions by the key; `own` is room for the list of its customers.
  void (*split)(const Instance&, const Chain& whole, u64 key, i32 regions, i32 region, Chain& part, i32* own,
                Workspace*);
  // Write a part to its place in the merged solution; set_merged changes the numbers of the chain.
  void (*merge)(const Instance&, const Chain& whole, const Chain& part, const Totals& before, const Totals& all,
                Workspace*);
  void (*clear)(const Instance&, Chain&);
  void (*add_route)(const Instance&, Chain&, const i32* customers, i32 size);
  // Whether the routes of the current solution keep the rules that depend on the order of customers.
  bool (*feasible)(const Instance&, const Chain&);
  u64 (*key_of)(u64 key, u64 part);
  void (*shortcuts)(const i32* length, i32 n, i32* shortcut);  // (n+1,), see shortcuts.hpp
};

extern const Core core_base;
extern const Core core_avx2;
extern const Core core_team5;  // teams of several lanes, for tests
extern const Core core_team32;

}  // namespace nds
