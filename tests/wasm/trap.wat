;; Does FAULT, an instruction that traps; the test puts one there.
(module
  (type $none (func))
  (type $takes_one (func (param i32)))
  (memory (export "memory") 1)
  (table 2 2 funcref)
  (elem (i32.const 0) $one)
  (func $one (param i32))
  (func $recurse (result i32) (i32.add (call $recurse) (i32.const 1)))
  (func (export "_start")
    FAULT))
