;; Never ends; every turn is a point where the engine may stop it.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop $again (br $again))))
