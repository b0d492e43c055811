#include "bare_engine.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "baselines.h"
#include "wasm/engine.h"
#include "wasm/handles.h"

namespace bulkhead::bench {
namespace {

// As a run has them by default.
constexpr std::size_t kStackBytes = 2U << 20;
constexpr std::uint64_t kMemoryBytes = 1ULL << 30;

// Never used up: only the counting costs.
constexpr std::uint64_t kFuel = 1ULL << 60;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "bare engine: %s\n", message.c_str());
  std::exit(1);
}

void Check(wasmtime_error_t* error) {
  if (const wasm::ErrorHandle owned{error}) {
    Die(wasm::MessageOf(error));
  }
}

void Check(wasmtime_error_t* error, wasm_trap_t* trap) {
  Check(error);
  if (trap != nullptr) {
    Die("the guest trapped");
  }
}

wasm::EngineSettings EngineSettingsOf(const BareSettings& settings) {
  return {.stack_bytes = kStackBytes,
          .interruptible = settings.interruptible,
          .metered = settings.metered,
          .parallel_compile = false,
          .shared_memory = true};
}

wasm::Module Compile(const wasm::Engine& engine, std::span<const std::uint8_t> bytes) {
  Result<wasm::Module> module = engine.Compile(bytes);
  if (!module) {
    Die(module.error().message);
  }
  return *std::move(module);
}

// One guest, called from one thread.
class BareEngine {
 public:
  BareEngine(std::span<const std::uint8_t> module, const BareSettings& settings);
  BareEngine(const BareEngine&) = delete;
  BareEngine& operator=(const BareEngine&) = delete;
  ~BareEngine() = default;

  void Run();

 private:
  struct Thread {
    const BareEngine& engine;
    std::array<wasmtime_val_t, 2> arguments{};
  };

  static wasm_trap_t* Spawn(void* self, wasmtime_caller_t* caller, wasmtime_val_raw_t* slots,
                            std::size_t count);
  static void* ThreadMain(void* thread);

  void DefineImport(wasmtime_linker_t* linker, const wasm_importtype_t* import);
  wasm::Store MakeStore() const;
  void Call(std::string_view entry, std::span<const wasmtime_val_t> arguments) const;
  // All but the `left` youngest.
  void JoinThreads(std::size_t left);

  const BareSettings settings_;
  wasm::MemoryBudget budget_;
  wasm::Engine engine_;
  wasm::Module module_;
  wasm::SharedMemory memory_;
  wasm::InstancePre linked_;
  std::deque<pthread_t> threads_;  // not joined yet; the first guest thread's
};

BareEngine::BareEngine(std::span<const std::uint8_t> module, const BareSettings& settings)
    : settings_(settings),
      budget_(kMemoryBytes),
      engine_(EngineSettingsOf(settings), budget_),
      module_(Compile(engine_, module)) {
  const wasm::Linker linker(wasmtime_linker_new(engine_.get()));
  wasm::ImportTypes imports;
  wasmtime_module_imports(module_.get(), imports.get());
  for (const wasm_importtype_t* import : imports) {
    DefineImport(linker.get(), import);
  }
  wasmtime_instance_pre_t* linked = nullptr;
  Check(wasmtime_linker_instantiate_pre(linker.get(), module_.get(), &linked));
  linked_.reset(linked);
}

// The shared memory, or else thread-spawn.
void BareEngine::DefineImport(wasmtime_linker_t* linker, const wasm_importtype_t* import) {
  const std::string_view module = wasm::ViewOf(wasm_importtype_module(import));
  const std::string_view name = wasm::ViewOf(wasm_importtype_name(import));
  const wasm_externtype_t* const type = wasm_importtype_type(import);
  if (wasm_externtype_kind(type) == WASM_EXTERN_FUNC) {
    Check(wasmtime_linker_define_func_unchecked(
        linker, module.data(), module.size(), name.data(), name.size(),
        wasm_externtype_as_functype_const(type), &BareEngine::Spawn, this, nullptr));
    return;
  }
  wasmtime_sharedmemory_t* memory = nullptr;
  Check(
      wasmtime_sharedmemory_new(engine_.get(), wasm_externtype_as_memorytype_const(type), &memory));
  memory_.reset(memory);
  wasmtime_extern_t item;
  item.kind = WASMTIME_EXTERN_SHAREDMEMORY;
  item.of.sharedmemory = memory;
  // A shared memory belongs to no store, but the engine's interface asks for one.
  const wasm::Store store = MakeStore();
  Check(wasmtime_linker_define(linker, wasmtime_store_context(store.get()), module.data(),
                               module.size(), name.data(), name.size(), &item));
}

void BareEngine::Run() {
  Call("_start", {});
  JoinThreads(0);
}

wasm::Store BareEngine::MakeStore() const {
  wasm::Store store(wasmtime_store_new(engine_.get(), nullptr, nullptr));
  wasmtime_context_t* const inside = wasmtime_store_context(store.get());
  if (settings_.interruptible) {
    wasmtime_context_set_epoch_deadline(inside, 1);
  }
  if (settings_.metered) {
    Check(wasmtime_context_set_fuel(inside, kFuel));
  }
  return store;
}

void BareEngine::Call(std::string_view entry, std::span<const wasmtime_val_t> arguments) const {
  const wasm::Store store = MakeStore();
  wasmtime_context_t* const inside = wasmtime_store_context(store.get());
  wasmtime_instance_t instance;
  wasm_trap_t* trap = nullptr;
  Check(wasmtime_instance_pre_instantiate(linked_.get(), inside, &instance, &trap), trap);
  wasmtime_extern_t function;
  if (!wasmtime_instance_export_get(inside, &instance, entry.data(), entry.size(), &function)) {
    Die("no export " + std::string(entry));
  }
  Check(wasmtime_func_call(inside, &function.of.func, arguments.data(), arguments.size(), nullptr,
                           0, &trap),
        trap);
}

wasm_trap_t* BareEngine::Spawn(void* self, wasmtime_caller_t* /*caller*/, wasmtime_val_raw_t* slots,
                               std::size_t /*count*/) {
  auto& engine = *static_cast<BareEngine*>(self);
  // The last one may still be ending, and need not be waited for.
  engine.JoinThreads(1);
  auto thread = std::make_unique<Thread>(Thread{engine});
  thread->arguments[0].kind = thread->arguments[1].kind = WASMTIME_I32;
  thread->arguments[0].of.i32 = 1;
  thread->arguments[1].of.i32 = slots[0].i32;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes + wasm::kHostStackBytes);
  pthread_t started{};
  if (pthread_create(&started, &attributes, &BareEngine::ThreadMain, thread.get()) != 0) {
    Die("no thread");
  }
  pthread_attr_destroy(&attributes);
  // NOLINTNEXTLINE(bugprone-unused-return-value): it is the thread's now
  thread.release();
  engine.threads_.push_back(started);
  slots[0].i32 = 1;
  return nullptr;
}

void* BareEngine::ThreadMain(void* thread) {
  const std::unique_ptr<Thread> own(static_cast<Thread*>(thread));
  own->engine.Call("wasi_thread_start", own->arguments);
  return nullptr;
}

void BareEngine::JoinThreads(std::size_t left) {
  for (; threads_.size() > left; threads_.pop_front()) {
    pthread_join(threads_.front(), nullptr);
  }
}

}  // namespace

double BareElapsedMs(std::span<const std::uint8_t> module, const BareSettings& settings) {
  return InOwnSession([&] {
    BareEngine engine(module, settings);
    const auto start = std::chrono::steady_clock::now();
    engine.Run();
    return Ms(std::chrono::steady_clock::now() - start).count();
  });
}

double BareCpuMs(std::span<const std::uint8_t> module, const BareSettings& settings) {
  return InOwnSession([&] {
    BareEngine engine(module, settings);
    const double before_ms = ReadSelfUse().cpu_ms;
    engine.Run();
    return ReadSelfUse().cpu_ms - before_ms;
  });
}

}  // namespace bulkhead::bench
