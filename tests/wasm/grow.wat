;; Grows its memory one MiB at a time and touches all of it. When growth is refused: REFUSED, an instruction of the
;; test's. Never refused up to 2 GiB: exits 0.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $old i32) (local $turns i32)
    (loop $again
      (local.set $old (memory.grow (i32.const 16)))
      (if (i32.eq (local.get $old) (i32.const -1)) (then REFUSED))
      (memory.fill (i32.shl (local.get $old) (i32.const 16)) (i32.const 1) (i32.const 1048576))
      (local.set $turns (i32.add (local.get $turns) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $turns) (i32.const 2047))))))
