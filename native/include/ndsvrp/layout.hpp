// Layouts of the structs that Python shares, as numbers: kernels compare their own with those of the compiled core,
// field by field.
#pragma once
#include "types.hpp"

namespace nds {

constexpr i32 kFieldsAtMost = 64;

// One number per field, from its name, offset and size. Fields of nested structs follow.
struct LayoutNumbers {
  u32 field[kFieldsAtMost] = {};
  i32 count = 0;
};

constexpr u32 hash_of_field(const char* name, u64 offset, u64 size) {
  u32 hash = 2166136261u;  // FNV-1a
  for (; *name != 0; ++name) hash = (hash ^ u32(*name)) * 16777619u;
  hash = (hash ^ u32(offset)) * 16777619u;
  return (hash ^ u32(size)) * 16777619u;
}

struct NumberFields {
  LayoutNumbers& numbers;
  u64 begin;

  template <class T> constexpr void operator()(const char* name, u64 offset) const {
    numbers.field[numbers.count++] = hash_of_field(name, begin + offset, sizeof(T));
    if constexpr (requires(T* nested) { each_field(nested, *this); })
      each_field(static_cast<T*>(nullptr), NumberFields{numbers, begin + offset});
  }
};

template <class S> constexpr LayoutNumbers layout_numbers() {
  LayoutNumbers numbers;
  each_field(static_cast<S*>(nullptr), NumberFields{numbers, 0});
  return numbers;
}

// The first field of S whose number is another one, or -1.
template <class S, i32 Count> constexpr i32 first_difference(const u32 (&given)[Count]) {
  const LayoutNumbers here = layout_numbers<S>();
  for (i32 i = 0; i < here.count || i < Count; ++i) {
    if (i >= here.count || i >= Count || here.field[i] != given[i]) return i;
  }
  return -1;
}

}  // namespace nds
