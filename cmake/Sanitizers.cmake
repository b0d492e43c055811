# BH_SANITIZE applies to the parent tower and the tests. Worker programs stay plain unless
# BH_SANITIZE_WORKERS is ON: sanitizer runtimes reserve terabytes of address space and use system
# calls that a locked-down worker is refused.
set(BH_SANITIZE_FLAGS "")
if(BH_SANITIZE)
  list(JOIN BH_SANITIZE "," bh_sanitizers)
  # The vptr check opens a pipe for each look, and calls an object invalid when none is left: tests
  # that use up all descriptors would fail for that alone.
  set(BH_SANITIZE_FLAGS "-fsanitize=${bh_sanitizers}" -fno-sanitize=vptr -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
endif()
set(BH_HARDEN_COMPILE_FLAGS "")
set(BH_HARDEN_LINK_FLAGS "")
if(BH_HARDEN)
  set(BH_HARDEN_COMPILE_FLAGS
      -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong
      -fstack-clash-protection -fcf-protection)
  set(BH_HARDEN_LINK_FLAGS -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
endif()
