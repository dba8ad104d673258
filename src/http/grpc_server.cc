#include "http/grpc_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

using Nanos = std::chrono::nanoseconds;

constexpr Nanos kNever = Nanos::max();
constexpr std::size_t kReadBuffer = 64U << 10;
/// The reads of one connection in one round: the others have their turn.
constexpr int kReadsInARound = 4;
constexpr int kAcceptsInARound = 128;
/// Before another attempt to accept when there is no descriptor at all.
constexpr Nanos kStuckPause = std::chrono::milliseconds{50};

// The subject of an event: the alarm, the listener, or the number of a connection.
constexpr std::uint64_t kAlarm = 0;
constexpr std::uint64_t kListener = 1;
constexpr std::uint64_t kFirstConnection = 2;

struct Connection {
  Connection(std::uint64_t its_number, Accepted accepted, GrpcHandler& handler, const GrpcSessionOptions& options,
             GrpcMemory& memory, const Clock& clock)
      : number(its_number),
        transport(std::move(accepted.transport)),
        guard(accepted.guard),
        proven(accepted.guard == nullptr),
        session(its_number, handler, options, memory, clock) {}
  const std::uint64_t number;
  const std::unique_ptr<Transport> transport;
  Guard* const guard;  ///< Accepted::guard
  bool proven;
  GrpcSession session;
  bool waits_for_room = false;  ///< epoll tells when it can be written
  bool touched = false;         ///< is in Loop::touched_
  bool greeted = false;         ///< `due` counts by it, and by
  std::uint64_t answered = 0;   ///< how many calls there were
  Nanos due = kNever;           ///< when it is too old
  Nanos sign_due = kNever;      ///< when somebody of it gets a sign of life
};

/// Work of other threads passes through `mutex_`; the rest belongs to the thread that serves.
class Loop final : public GrpcServer {
 public:
  Loop(std::unique_ptr<GrpcListener> listener, const GrpcServerOptions& options, const Clock& clock)
      : options_(options), clock_(clock), close_(listener->closer()), listener_(std::move(listener)) {}
  ~Loop() override { Loop::stop(Deadline{Nanos{0}}); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] Result<void> open() {
    epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    alarm_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    // By the edge: each ring is an event of its own, and nobody has to read the counter.
    const bool is_open = epoll_.is_open() && alarm_.is_open() &&
                         watch(EPOLL_CTL_ADD, alarm_.get(), kAlarm, EPOLLIN | EPOLLET) &&
                         watch(EPOLL_CTL_ADD, listener_->descriptor(), kListener, EPOLLIN);
    return is_open ? Result<void>() : fail(system_error("serve", listener_->where(), errno));
  }

  void serve(GrpcHandler& handler) override {
    CROFT_ASSERT(handler_ == nullptr);
    handler_ = &handler;
    thread_ = std::thread([this] { run(); });
  }

  void answer(std::vector<GrpcAnswer> answers) override {
    std::vector<Order> orders;
    orders.reserve(answers.size());
    for (GrpcAnswer& answer : answers) orders.push_back({Order::Kind::answer, std::move(answer)});
    give(std::move(orders));
  }
  void give_signs(GrpcCallId call, std::string message, Nanos first) override {
    std::vector<Order> orders;
    orders.push_back({Order::Kind::signs, {call, GrpcCode::ok, {}, std::move(message)}, first});
    give(std::move(orders));
  }

  void stop_listening() override {
    close_();
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ring();
  }
  void stop(Deadline deadline) override {
    {
      const std::lock_guard lock(mutex_);
      stop_by_ = deadline.at_since_boot;
    }
    stop_listening();
    if (thread_.joinable()) thread_.join();
    listener_.reset();
  }

  [[nodiscard]] Counts counts() const override {
    const std::lock_guard lock(counts_mutex_);
    return counts_;
  }

 private:
  /// Something to be said to a peer.
  struct Order {
    enum class Kind : std::uint8_t { answer, signs };
    Kind kind = Kind::answer;
    GrpcAnswer what;
    Nanos first_sign{};
  };

  // ---------------------------------------------------------------- from other threads

  void give(std::vector<Order> orders) {
    if (orders.empty()) return;
    if (std::this_thread::get_id() == serving_) {
      std::move(orders.begin(), orders.end(), std::back_inserter(own_));
      return;
    }
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = given_.empty();
      std::move(orders.begin(), orders.end(), std::back_inserter(given_));
    }
    if (first) ring();
  }
  void ring() const {
    const std::uint64_t one = 1;
    // It can't fail: the counter is far from full.
    static_cast<void>(!::write(alarm_.get(), &one, sizeof one));
  }

  // ---------------------------------------------------------------- the loop

  void run() {
    serving_ = std::this_thread::get_id();
    std::array<epoll_event, 128> events;
    while (!done_) {
      const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience());
      CROFT_ASSERT(ready >= 0 || errno == EINTR);
      now_ = clock_.now().since_boot;
      read_all(std::span(events).first(static_cast<std::size_t>(std::max(ready, 0))));
      // Each step may lead to more work.
      do {
        carry_out();
        look_at_the_time();
        flush_touched();
      } while (!own_.empty());
      done_ = stop_by_seen_ && (connections_.empty() || now_ >= *stop_by_seen_);
    }
    while (!connections_.empty()) close(*connections_.begin()->second);
    publish();
  }

  /// Milliseconds until something is due; -1: nothing is.
  [[nodiscard]] int patience() const {
    Nanos due = due_.empty() ? kNever : due_.begin()->first;
    if (!signs_due_.empty()) due = std::min(due, signs_due_.begin()->first);
    if (stop_by_seen_) due = std::min(due, *stop_by_seen_);
    if (stuck_until_) due = std::min(due, *stuck_until_);
    if (!unread_.empty()) return 0;
    if (due == kNever) return -1;
    const Nanos left = std::max(due - clock_.now().since_boot, Nanos{0});
    return static_cast<int>(
        std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), INT_MAX));
  }

  void read_all(std::span<const epoll_event> events) {
    for (const epoll_event& event : events) {
      if (event.data.u64 == kAlarm) continue;
      if (event.data.u64 == kListener) {
        accept_all();
      } else if (Connection* connection = find(event.data.u64)) {
        if ((event.events & EPOLLOUT) != 0) touch(*connection);
        const bool to_read = (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0;
        if (to_read || connection->transport->read_waits_for_write()) read(*connection);
      }
    }
    const bool rest = !unread_.empty();
    for (const std::uint64_t number : std::exchange(unread_, {})) {
      if (Connection* connection = find(number)) read(*connection);
    }
    if (rest || !events.empty()) handler_->on_batch_end();
  }

  void accept_all() {
    for (int i = 0; listener_ && i < kAcceptsInARound; ++i) {
      auto accepted = listener_->next();
      if (!accepted) break;
      take(*std::move(accepted));
    }
    if (listener_ && listener_->is_stuck()) {
      // Readable all the time: not to be watched for a while.
      if (watch(EPOLL_CTL_MOD, listener_->descriptor(), kListener, 0)) stuck_until_ = now_ + kStuckPause;
    }
    publish();
  }

  void take(Accepted accepted) {
    if (connections_.size() >= options_.connections_max) {
      if (waiting_for_proof_.empty()) {
        ++too_many_;
        return;
      }
      // A connection that holds a place without a proof keeps nobody out who has one: those need moments.
      ++unproven_;
      close(*find(*waiting_for_proof_.begin()));
    }
    const std::uint64_t number = next_number();
    if (!watch(EPOLL_CTL_ADD, accepted.transport->descriptor(), number, EPOLLIN | EPOLLRDHUP)) {
      ++no_descriptors_;
      return;
    }
    auto made = std::make_unique<Connection>(number, std::move(accepted), *handler_, options_.session, memory_, clock_);
    Connection& connection = *made;
    connections_.emplace(number, std::move(made));
    if (!connection.proven) waiting_for_proof_.insert(number);
    set_due(connection, now_ + options_.greeting_max);
    // A peer that connects mostly has something to say.
    read(connection);
  }

  /// Numbers are not used again before all others were.
  std::uint64_t next_number() {
    do {
      number_ = number_ + 1 < GrpcSession::kConnectionEnd ? number_ + 1 : kFirstConnection;
    } while (connections_.contains(number_));
    return number_;
  }

  void read(Connection& connection) {
    if (!connection.proven && !is_proven(connection)) return;
    bool all = false;
    for (int i = 0; !all && i < kReadsInARound; ++i) {
      const auto moved = connection.transport->read(std::as_writable_bytes(std::span(buffer_)));
      if (!moved || moved->ended) return close(connection);
      if (moved->bytes > 0) connection.session.receive(std::as_bytes(std::span(buffer_)).first(moved->bytes));
      // A socket that gives less than there is room for has no more; TLS gives one record at a time.
      const bool is_drained = connection.guard == nullptr && moved->bytes < buffer_.size();
      all = moved->would_block || is_drained || connection.session.is_over();
    }
    // Bytes that TLS has decrypted already wake nobody.
    if (!all && connection.guard != nullptr) unread_.push_back(connection.number);
    touch(connection);
  }

  /// Closes a connection that will never be.
  [[nodiscard]] bool is_proven(Connection& connection) {
    switch (connection.guard->prove()) {
      case Guard::Proof::given:
        connection.proven = true;
        waiting_for_proof_.erase(connection.number);
        connection.session.set_peer(connection.guard->peer());
        return true;
      case Guard::Proof::awaited:
        touch(connection);  // it may wait for room
        return false;
      case Guard::Proof::withheld:
        ++unproven_;
        close(connection);
        return false;
    }
    return false;
  }

  /// Does what the handler and other threads want to be said, and to be ended.
  void carry_out() {
    std::vector<Order> orders = std::exchange(own_, {});
    bool closed = false;
    std::optional<Nanos> stop_by;
    {
      const std::lock_guard lock(mutex_);
      std::move(given_.begin(), given_.end(), std::back_inserter(orders));
      given_.clear();
      closed = closed_;
      stop_by = stop_by_;
    }
    for (Order& order : orders) {
      Connection* connection = find(GrpcSession::connection_of(order.what.call));
      if (connection == nullptr) continue;
      switch (order.kind) {
        case Order::Kind::answer:
          connection->session.answer(order.what);
          break;
        case Order::Kind::signs:
          connection->session.give_signs(order.what.call, std::move(order.what.message), order.first_sign);
          break;
      }
      touch(*connection);
    }
    if (closed) listener_.reset();  // takes its place in epoll along
    if (!stop_by || stop_by_seen_) return;
    stop_by_seen_ = stop_by;
    for (const auto& [number, connection] : connections_) {
      connection->session.go_away();
      touch(*connection);
    }
  }

  void look_at_the_time() {
    if (stuck_until_ && now_ >= *stuck_until_) {
      stuck_until_.reset();
      if (listener_) static_cast<void>(watch(EPOLL_CTL_MOD, listener_->descriptor(), kListener, EPOLLIN));
    }
    while (!signs_due_.empty() && signs_due_.begin()->first <= now_) {
      Connection& connection = *find(signs_due_.begin()->second);
      connection.session.send_signs(now_);
      set_sign_due(connection);
      touch(connection);
    }
    while (!due_.empty() && due_.begin()->first <= now_) {
      Connection& connection = *find(due_.begin()->second);
      if (connection.session.in_hand() > 0) {  // came in this very round
        set_due(connection, kNever);
        continue;
      }
      if (!connection.proven) ++unproven_;
      connection.session.go_away();
      static_cast<void>(write(connection));
      close(connection);
    }
  }

  void flush_touched() {
    // Closing one touches no other.
    for (const std::uint64_t number : std::exchange(touched_, {})) {
      Connection* connection = find(number);
      if (connection == nullptr) continue;
      connection->touched = false;
      if (!write(*connection) || connection->session.is_over()) {
        close(*connection);
      } else {
        look_at_its_age(*connection);
        set_sign_due(*connection);
      }
    }
  }

  /// A connection is watched for its age while the handler has nothing of it.
  void look_at_its_age(Connection& connection) {
    if (connection.session.in_hand() > 0) return set_due(connection, kNever);
    const bool greeted = connection.session.has_greeted();
    const std::uint64_t answered = connection.session.answered();
    const bool is_news = greeted != connection.greeted || answered != connection.answered;
    if (connection.due != kNever && !is_news) return;
    connection.greeted = greeted;
    connection.answered = answered;
    if (greeted) set_due(connection, now_ + options_.idle_max);
  }

  /// False: nobody is there any more.
  [[nodiscard]] bool write(Connection& connection) {
    Transport& transport = *connection.transport;
    bool wait = false;
    while (connection.proven && !wait) {
      const std::string_view bytes = connection.session.unsent();
      if (bytes.empty()) {
        connection.session.note_told(now_);
        break;
      }
      const auto moved = transport.write(std::as_bytes(std::span(bytes)));
      if (!moved) return false;
      connection.session.sent(moved->bytes);
      if (!moved->would_block) continue;
      wait = !transport.write_waits_for_read();
      if (!wait) break;
    }
    return wait_for_room(connection, wait || transport.read_waits_for_write());
  }
  [[nodiscard]] bool wait_for_room(Connection& connection, bool wait) {
    if (std::exchange(connection.waits_for_room, wait) == wait) return true;
    return watch(EPOLL_CTL_MOD, connection.transport->descriptor(), connection.number,
                 EPOLLIN | EPOLLRDHUP | (wait ? static_cast<std::uint32_t>(EPOLLOUT) : 0U));
  }

  void close(Connection& connection) {
    set_due(connection, kNever);
    connection.session.hang_up();
    set_sign_due(connection);  // none is any more
    waiting_for_proof_.erase(connection.number);
    connections_.erase(connection.number);  // the descriptor leaves epoll with its closing
    publish();
  }

  // ---------------------------------------------------------------- small parts

  [[nodiscard]] bool watch(int operation, int descriptor, std::uint64_t about, std::uint32_t what) const {
    epoll_event event{};
    event.events = what;
    event.data.u64 = about;
    return ::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
  }
  [[nodiscard]] Connection* find(std::uint64_t number) const {
    const auto found = connections_.find(number);
    return found == connections_.end() ? nullptr : found->second.get();
  }
  void touch(Connection& connection) {
    if (!std::exchange(connection.touched, true)) touched_.push_back(connection.number);
  }
  void set_due(Connection& connection, Nanos due) {
    if (connection.due == due) return;
    if (connection.due != kNever) due_.erase({connection.due, connection.number});
    connection.due = due;
    if (due != kNever) due_.insert({due, connection.number});
  }
  void set_sign_due(Connection& connection) {
    const Nanos due = connection.session.next_sign();
    if (connection.sign_due == due) return;
    if (connection.sign_due != kNever) signs_due_.erase({connection.sign_due, connection.number});
    connection.sign_due = due;
    if (due != kNever) signs_due_.insert({due, connection.number});
  }
  void publish() {
    const std::lock_guard lock(counts_mutex_);
    counts_.open = connections_.size();
    counts_.too_many = too_many_;
    counts_.unproven = unproven_;
    if (listener_) accepted_ = listener_->counts();
    counts_.accepted = accepted_.accepted - too_many_ - no_descriptors_;
    counts_.foreign_users = accepted_.foreign_users;
    counts_.no_descriptors = accepted_.no_descriptors + no_descriptors_;
  }

  const GrpcServerOptions options_;
  const Clock& clock_;
  const std::function<void()> close_;  ///< keeps new callers out, from any thread
  FileDescriptor epoll_;
  FileDescriptor alarm_;  ///< eventfd
  GrpcHandler* handler_ = nullptr;
  std::thread thread_;
  std::atomic<std::thread::id> serving_{};

  std::mutex mutex_;          ///< guards these three
  std::vector<Order> given_;  ///< by other threads
  bool closed_ = false;       ///< no more connections
  std::optional<Nanos> stop_by_;

  mutable std::mutex counts_mutex_;
  Counts counts_;

  // Used by the loop alone.
  Nanos now_{};
  std::vector<Order> own_;                     ///< by the handler
  GrpcMemory memory_;                          ///< before the sessions, which count in it
  std::unique_ptr<GrpcListener> listener_;     ///< null: closed
  std::optional<Nanos> stuck_until_;           ///< it is not watched
  GrpcListener::Counts accepted_;              ///< by it
  std::set<std::uint64_t> waiting_for_proof_;  ///< connections, the oldest first
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t number_ = kFirstConnection;
  std::vector<std::uint64_t> touched_;  ///< connections with something to be sent, or to be looked at
  std::vector<std::uint64_t> unread_;   ///< TLS connections that may have more than epoll knows of
  std::set<std::pair<Nanos, std::uint64_t>> due_, signs_due_;
  std::optional<Nanos> stop_by_seen_;
  bool done_ = false;
  std::uint64_t too_many_ = 0;
  std::uint64_t no_descriptors_ = 0;
  std::uint64_t unproven_ = 0;
  std::array<char, kReadBuffer> buffer_{};
};

// ---------------------------------------------------------------- its listeners

/// A peer that is refused again and again must not keep the loop from its other work.
constexpr int kRefusedAtOnce = 64;

bool is_out_of_descriptors(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS || error_number == ENOMEM;
}

FileDescriptor open_spare() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::make(std::unique_ptr<GrpcListener> listener,
                                                     const GrpcServerOptions& options, const Clock& clock) {
  auto loop = std::make_unique<Loop>(std::move(listener), options, clock);
  TRY_VOID(loop->open());
  return loop;
}

Result<void> GrpcListener::open(FileDescriptor socket) {
  spare_ = open_spare();
  if (!spare_.is_open()) return fail(system_error("open", "/dev/null", errno));
  socket_ = std::move(socket);
  return {};
}

/// Somebody waits whom we can't serve: with the spare descriptor he is told so at once, and looks for himself.
void GrpcListener::refuse_without_descriptor() {
  ++counts_.no_descriptors;
  spare_ = FileDescriptor();
  { const FileDescriptor refused(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  spare_ = open_spare();
  stuck_ = !spare_.is_open();  // somebody else took it
}

std::optional<FileDescriptor> GrpcListener::accept(const std::function<bool(int)>& may_connect) {
  stuck_ = false;
  if (!spare_.is_open()) spare_ = open_spare();
  for (int refused = 0; refused < kRefusedAtOnce && !stuck_; ++refused) {
    FileDescriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.is_open()) {
      if (may_connect(connection.get())) {
        ++counts_.accepted;
        return connection;
      }
      ++counts_.foreign_users;
    } else if (is_out_of_descriptors(errno)) {
      refuse_without_descriptor();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR && errno != ECONNABORTED) {
      stuck_ = true;
    }
  }
  return {};
}

}  // namespace croft::os
