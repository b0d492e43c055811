// System calls without a C library between: for programs that have none, or may be built against
// any.
#pragma once

#if !defined(__x86_64__)
#error "system calls are for x86-64"
#endif

namespace bulkhead::process {

struct Words {
  long values[6];
};

// 0 or more: the result; less: -errno.
inline long CallWith(long number, const Words& w) {
  long result = number;
  register long r10 __asm__("r10") = w.values[3];
  register long r8 __asm__("r8") = w.values[4];
  register long r9 __asm__("r9") = w.values[5];
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(w.values[0]), "S"(w.values[1]), "d"(w.values[2]), "r"(r10), "r"(r8),
                     "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

template <class T>
long Word(T value) {
  return static_cast<long>(value);
}

template <class T>
long Word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// Arguments not given are 0.
template <class... Arguments>
long Call(long number, Arguments... arguments) {
  return CallWith(number, Words{{Word(arguments)...}});
}

}  // namespace bulkhead::process
