#include "os/fiber.h"

#include <ucontext.h>

#include <utility>
#include <vector>

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace croft::os {
namespace {

/// Enough for the deepest decision in a debug build. The kernel gives pages as they are touched.
constexpr std::size_t kStackBytes = std::size_t{512} << 10;
/// Stacks that wait for the next fiber: to make one costs more than to run a short call on it.
constexpr std::size_t kSparesMax = 256;

using Stack = std::unique_ptr<char[]>;  // NOLINT: a vector would touch every page

std::vector<Stack>& spares() {
  thread_local std::vector<Stack> kept;
  return kept;
}

Stack take_stack() {
  if (spares().empty()) return Stack(new char[kStackBytes]);  // NOLINT: as above
  Stack stack = std::move(spares().back());
  spares().pop_back();
  return stack;
}

thread_local Fiber::Parts* current = nullptr;

/// A switch of stacks, as AddressSanitizer has to be told of it. `from_ends`: nobody comes back to the one that is
/// left.
template <class Switch>
void switching([[maybe_unused]] const void* to, [[maybe_unused]] std::size_t bytes, [[maybe_unused]] bool from_ends,
               Switch change) {
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &fake, to, bytes);
  change();
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  change();
#endif
}

}  // namespace

struct Fiber::Parts {
  explicit Parts(std::function<void()> run) : body(std::move(run)) {}

  std::function<void()> body;
  Stack stack;
  ucontext_t inside{}, outside{};
  const void* outer_stack = nullptr;
  std::size_t outer_bytes = 0;
  Parts* outer = nullptr;
  bool begun = false, ended = false;

  static void enter() {
    Parts& own = *current;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &own.outer_stack, &own.outer_bytes);
#endif
    own.body();
    own.body = nullptr;
    own.ended = true;
    switching(own.outer_stack, own.outer_bytes, true, [&] { swapcontext(&own.inside, &own.outside); });
  }
};

Fiber::Fiber(std::function<void()> body) : parts_(std::make_unique<Parts>(std::move(body))) {}

Fiber::~Fiber() {
  CROFT_ASSERT(!parts_->begun || parts_->ended);
  if (parts_->stack && spares().size() < kSparesMax) spares().push_back(std::move(parts_->stack));
}

bool Fiber::has_ended() const { return parts_->ended; }

void Fiber::resume() {
  Parts& own = *parts_;
  CROFT_ASSERT(!own.ended && current != &own);
  if (!own.begun) {
    own.begun = true;
    own.stack = take_stack();
    getcontext(&own.inside);
    own.inside.uc_stack.ss_sp = own.stack.get();
    own.inside.uc_stack.ss_size = kStackBytes;
    own.inside.uc_link = nullptr;
    makecontext(&own.inside, &Parts::enter, 0);
  }
  own.outer = std::exchange(current, &own);
  switching(own.stack.get(), kStackBytes, false, [&] { swapcontext(&own.outside, &own.inside); });
  current = own.outer;
}

void Fiber::stop() {
  CROFT_ASSERT(current != nullptr);
  Parts& own = *current;
  switching(own.outer_stack, own.outer_bytes, false, [&] { swapcontext(&own.inside, &own.outside); });
}

}  // namespace croft::os
