;; Never gets through its start function.
(module
  (memory (export "memory") 1)
  (func $spin (loop $again (br $again)))
  (start $spin)
  (func (export "_start")))
