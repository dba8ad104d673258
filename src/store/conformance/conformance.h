#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/store.h"
#include "store/test_records.h"

namespace croft::store {

/// One store under test, empty at first. Backends give their own and instantiate the suite:
///   INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, testing::Values(BackendCase{"memory", make_memory_backend}));
class ConformanceBackend {
 public:
  virtual ~ConformanceBackend() = default;
  /// One more client of the store; those opened before may be open still or closed. A durable store keeps its content
  /// while no client is open.
  [[nodiscard]] virtual std::unique_ptr<Store> open() = 0;
  /// Makes the bytes of a record that is there such as nobody understands, behind the backs of all clients.
  virtual void damage(const Key& key) = 0;
  /// Whether a watch sees that.
  [[nodiscard]] virtual bool damage_is_watched() const { return true; }
  /// False for kinds that belong to somebody else and are only read here.
  [[nodiscard]] virtual bool writes(Kind) const { return true; }
  /// How often a test may wait for a watch to say how far it is complete: an API server says it once a minute.
  [[nodiscard]] virtual std::uint64_t waits_for_completeness() const { return 3; }
  /// False for one that lives in the test's own process.
  [[nodiscard]] virtual bool outlives_processes() const { return true; }
};

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<ConformanceBackend>()> make;
};
// NOLINTNEXTLINE(readability-identifier-naming): the name is googletest's
inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }

/// What every Store promises, whatever is behind it (store/store.h).
class StoreConformance : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    backend_ = GetParam().make();
    store_ = backend_->open();
    ASSERT_NE(store_, nullptr);
  }

  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }
  [[nodiscard]] Deadline soon() const { return in(std::chrono::seconds{30}); }

  /// The names in the order in which they come.
  [[nodiscard]] std::vector<std::string> names_of(const ListRequest& request) const {
    std::vector<std::string> names;
    const auto done = store_->for_each(
        request, [&] { return soon(); },
        [&](Record& record) -> Result<void> {
          EXPECT_TRUE(request.keys_only || record.value.has_value());
          names.push_back(record.key.name);
          return {};
        });
    EXPECT_TRUE(done) << done.error().message;
    return names;
  }

  /// A key of a small kind.
  [[nodiscard]] static Key mark_key(const std::string& name) { return {Kind::high_water_mark, name}; }
  [[nodiscard]] static Value mark(std::uint64_t n) { return core::HighWaterMark{core::SequenceNumber(n)}; }
  [[nodiscard]] static Write put(const std::string& name, std::uint64_t n, Condition condition = Condition::always()) {
    return {mark_key(name), mark(n), condition};
  }
  [[nodiscard]] static Write remove(const std::string& name, Condition condition = Condition::always()) {
    return {mark_key(name), std::nullopt, condition};
  }

  /// Each commit has a token of its own, from whatever thread and process: a store may know a commit by it.
  [[nodiscard]] static WriteToken next_token() {
    static std::atomic<std::uint64_t> last{1'000};
    WriteToken token = sample_token(++last);
    const auto process = static_cast<std::uint32_t>(::getpid());
    for (std::size_t i = 0; i < 4; ++i) token.bytes[8 + i] = static_cast<std::uint8_t>(process >> (8 * i));
    return token;
  }

  [[nodiscard]] Result<Revision> commit(std::vector<Write> writes) const {
    return commit_to(*store_, std::move(writes));
  }
  [[nodiscard]] Result<Revision> commit_to(Store& store, std::vector<Write> writes) const {
    return store.commit(writes, next_token(), soon());
  }

  /// All of them, in one commit where the store can.
  [[nodiscard]] Result<void> write_all(Store& store, std::vector<Write> writes) const;
  [[nodiscard]] Result<void> write_all(std::vector<Write> writes) const {
    return write_all(*store_, std::move(writes));
  }

  /// The value of a mark, or nothing.
  [[nodiscard]] std::optional<std::uint64_t> read(const std::string& name) const { return read_from(*store_, name); }
  [[nodiscard]] std::optional<std::uint64_t> read_from(Store& store, const std::string& name) const {
    const auto record = store.get(mark_key(name), soon());
    EXPECT_TRUE(record) << record.error().message;
    if (!record || !*record) return std::nullopt;
    return std::get<core::HighWaterMark>(*(*record)->value).sequence_number.value;
  }

  /// A watch of what comes from now on.
  [[nodiscard]] std::unique_ptr<Watch> watch_of(const WatchScope& scope) const {
    const auto position = store_->position(soon());
    EXPECT_TRUE(position) << position.error().message;
    auto watch = store_->watch(scope, position.value(), soon());
    EXPECT_TRUE(watch) << watch.error().message;
    return std::move(watch).value();
  }

  /// Adds one to a mark by compare-and-swap, as often as it takes.
  void increment(Store& store, const std::string& name) const;

  [[nodiscard]] static ErrorCode code_of(const Result<Revision>& result) {
    return result ? ErrorCode::internal : result.error().code;
  }

  os::SystemClock clock_;
  std::unique_ptr<ConformanceBackend> backend_;
  std::unique_ptr<Store> store_;
};

}  // namespace croft::store
