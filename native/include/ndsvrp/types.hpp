// Plain data shared by the engines and by Python. Nothing here becomes code: this header is compiled into translation
// units for different instruction sets.
#pragma once

#ifndef NDS_ISA
  #define NDS_ISA isa_base  // each build of the core has its own namespace and shares no code
#endif

namespace nds {

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using u16 = unsigned short;

// A boolean in an array. A byte saves memory on a GPU; on a CPU, stores to bytes may alias everything, which costs more
// than the memory is worth.
#if defined(__CUDACC__)
using Flag = unsigned char;
#else
using Flag = i32;
#endif

// Lengths, times and prizes are whole ticks, at most 2^28. A larger prize is a code: kDear, plus an exponent, plus the
// bits of a mantissa after its first. A required customer has the prize kRequired. A limited fleet may leave it
// unserved; then it costs more than all optional customers together (Instance::missing).
constexpr i32 kRequired = 1 << 29;
constexpr i32 kDear = 1 << 28, kDearBits = 22;
constexpr i32 kNever = 0x7fffffff;
constexpr i64 kNoRoom = 1ll << 62;  // the result of a reconstruction that ran out of memory
constexpr i32 kTeams = 16;          // teams of a crew, at most

enum RuinRule : i32 { kGiven = 0, kString = 1, kRelated = 2, kRandom = 3 };
enum Chance : u32 {};  // a probability times 2^32

// Structs that Python reads or writes are declared as lists of fields: NDS_STRUCT makes the struct and `each_field(S*,
// call)`, which calls call.operator()<type>(name, offset) for each field. The binding derives layouts for Python from
// it, and kernels compare them.
#if defined(__CUDACC_RTC__)  // NVRTC has no offsetof
  #define NDS_OFFSET(S, name) u64(__INTADDR__(&((S*)0)->name))
#else
  #define NDS_OFFSET(S, name) __builtin_offsetof(S, name)
#endif
#define NDS_MEMBER(type, name) type name;
#define NDS_VISIT(type, name) call.template operator()<type>(#name, NDS_OFFSET(S, name));
#define NDS_STRUCT(Name, FIELDS)                \
  struct Name {                                 \
    FIELDS(NDS_MEMBER)                          \
  };                                            \
  constexpr void each_field(Name*, auto call) { \
    using S = Name;                             \
    FIELDS(NDS_VISIT)                           \
  }

// A problem in ticks. Node 0 is the depot. A pointer that the problem does not need is null.
#define NDS_INSTANCE(FIELD)                                                                        \
  FIELD(i32, n)            /* customers */                                                         \
  FIELD(i32, capacity)     /* in units of demand */                                                \
  FIELD(i32, vehicles)     /* routes, at most */                                                   \
  FIELD(i32, max_distance) /* of a route; 0: no limit on routes */                                 \
  FIELD(i32, max_duration) /* of a route; 0: no limit on routes */                                 \
  FIELD(const i32*, demand)                                                                        \
  FIELD(const i32*, ready)                                                                         \
  FIELD(const i32*, due)                                                                           \
  FIELD(const i32*, service)                                                                       \
  FIELD(const i32*, prize)  /* cost of leaving a customer unserved, or kRequired */                \
  FIELD(const i32*, alone)  /* 1: fits a route of its own; null: whatever fits a vehicle */        \
  FIELD(i32, bonus)         /* added to each prize */                                              \
  FIELD(i64, missing)       /* cost of leaving a required customer unserved */                     \
  FIELD(i64, unit_bonus)    /* added to it for each unit of its weight */                          \
  FIELD(i64, relief)        /* by how much it counts less when steps are accepted */               \
  FIELD(const i32*, weight) /* of required customers: their demand, or their absences */           \
  FIELD(const float*, x)    /* coordinates, relative to the corner of the bounding box, */         \
  FIELD(const float*, y)    /* or by a matrix: see cpu/landmarks.hpp */                            \
  FIELD(float, scale)       /* ticks per unit of x and y */                                        \
  FIELD(i32, box_margin)    /* largest error in ticks of a length from x and y */                  \
  FIELD(const double*, xd)  /* coordinates for whole lengths, */                                   \
  FIELD(const double*, yd)  /* which are floor(d * whole_scale + whole_shift) */                   \
  FIELD(double, whole_scale)                                                                       \
  FIELD(double, whole_shift)                                                                       \
  FIELD(const i32*, length)   /* (n+1, n+1) from row to column */                                  \
  FIELD(const i32*, time)     /* (n+1, n+1); the lengths where there are no times */               \
  FIELD(const i32*, shortcut) /* (n+1,) by how much a customer makes routes shorter; or null */    \
  FIELD(const i32*, ways)     /* (n+1, n+1) length to the row from each column: `length` itself */ \
                              /* if it is symmetric; or null */                                    \
  FIELD(const i32*, near)     /* (n+1, near_count) nearest customers, nearest first */             \
  FIELD(i32, near_count)                                                                           \
  FIELD(const unsigned short*, whole) /* of a part with own numbers: those of the whole */         \
  FIELD(const i32*, part)             /* and the other way, 0 for customers elsewhere */           \
  FIELD(const i32*, rank)             /* (sorts, n+1) rank of a customer in a sort order */        \
  FIELD(const i32*, sort_weight)      /* (sorts+1,) of the random order, then of each sort */      \
  FIELD(i32, sorts)
NDS_STRUCT(Instance, NDS_INSTANCE)

// How an engine call ruins and recreates solutions. The names are those of engine/base.py.
#define NDS_RECIPE(FIELD)      \
  FIELD(RuinRule, rule)        \
  FIELD(i32, removals)         \
  FIELD(float, string_average) \
  FIELD(i32, string_longest)   \
  FIELD(float, string_split)   \
  FIELD(float, string_depth)   \
  FIELD(i32, orders)           \
  FIELD(i32, sorted_orders)    \
  FIELD(i32, all_routes)       \
  FIELD(i32, insert_near)      \
  FIELD(Chance, blink)         \
  FIELD(Chance, open_route)    \
  FIELD(Chance, open_cheaper)  \
  FIELD(i32, tails)            \
  FIELD(Chance, tails_share)   \
  FIELD(i32, serve_all)        \
  FIELD(float, serve_bonus)    \
  FIELD(i32, weigh_unserved)   \
  FIELD(i32, regions)
NDS_STRUCT(Recipe, NDS_RECIPE)

// How much memory is needed. Routes may outnumber customers: those that a step empties count until the end of the step.
#define NDS_SIZES(FIELD)                                     \
  FIELD(i32, customers) /* of the largest instance */        \
  FIELD(i32, removed)   /* customers of one ruin, at most */ \
  FIELD(i32, routes)                                         \
  FIELD(i32, pool)      /* stops of a solution */            \
  FIELD(i32, stops)     /* of a draft */                     \
  FIELD(i32, locations) /* of customers in a draft: nodes, or 0 where they are not needed */
NDS_STRUCT(Sizes, NDS_SIZES)

// What a kernel needs to know besides the data: one record per engine call.
#define NDS_PLAN(FIELD)                                       \
  FIELD(Recipe, recipe)                                       \
  FIELD(Sizes, home)  /* of the chains in global memory */    \
  FIELD(Sizes, work)  /* of the workspace of a block */       \
  FIELD(i32, columns) /* of the table of gaps; 0: no table */ \
  FIELD(u64, chain_bytes)                                     \
  FIELD(u64, workspace_bytes)
NDS_STRUCT(Plan, NDS_PLAN)

// The numbers of a chain besides its arrays: of the current solution, of the best one.
#define NDS_CURRENT(FIELD)                 \
  FIELD(i64, cost)                         \
  FIELD(i32, routes)                       \
  FIELD(i32, used) /* stops of the pool */ \
  FIELD(i32, unserved_count)               \
  FIELD(i32, unserved_required) /* of them, required customers */
NDS_STRUCT(CurrentNumbers, NDS_CURRENT)
#define NDS_BEST(FIELD)                                                            \
  FIELD(i64, best_cost)                                                            \
  FIELD(i32, best_is_current) /* then it is saved only when the chain leaves it */ \
  FIELD(i32, best_length)     /* of the saved tour */                              \
  FIELD(i32, best_unserved)   /* required customers that it leaves unserved */
NDS_STRUCT(BestNumbers, NDS_BEST)
#define NDS_RECORD(FIELD)        \
  FIELD(CurrentNumbers, current) \
  FIELD(BestNumbers, best)
NDS_STRUCT(Record, NDS_RECORD)

}  // namespace nds
