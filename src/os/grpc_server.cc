#include "os/grpc_server.h"

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
/// Of one connection in one round: the others have their turn.
constexpr int kReadsInARound = 4;
constexpr int kAcceptsInARound = 128;
/// Before another attempt to accept when there is no descriptor at all.
constexpr Nanos kStuckPause = std::chrono::milliseconds{50};

// What an event is about: these two, or the number of a connection.
constexpr std::uint64_t kAlarm = 0;
constexpr std::uint64_t kListener = 1;
constexpr std::uint64_t kFirstConnection = 2;

struct Connection {
  Connection(std::uint64_t its_number, FileDescriptor its_socket, GrpcHandler& handler,
             const GrpcSessionOptions& options, GrpcMemory& memory, const Clock& clock)
      : number(its_number), socket(std::move(its_socket)), session(its_number, handler, options, memory, clock) {}
  const std::uint64_t number;
  FileDescriptor socket;
  GrpcSession session;
  bool waits_for_room = false;  ///< epoll tells when it can be written
  bool touched = false;         ///< is in Loop::touched_
  bool greeted = false;         ///< `due` counts by it, and by
  std::uint64_t answered = 0;   ///< how many calls there were
  Nanos due = kNever;           ///< when it is too old
};

}  // namespace

/// Everything. What other threads do passes through `mutex_`; the rest belongs to the thread that serves.
class GrpcServer::Loop {
 public:
  Loop(std::unique_ptr<UnixListener> listener, const GrpcServerOptions& options, const Clock& clock)
      : options_(options), clock_(clock), listener_(std::move(listener)), remove_file_(listener_->file_remover()) {
    memory_.bytes_max = options.memory_bytes_max;
  }

  [[nodiscard]] Result<void> open() {
    epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    alarm_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    // By the edge: each ring is an event of its own, and nobody has to read the counter.
    if (!epoll_.is_open() || !alarm_.is_open() || !watch(EPOLL_CTL_ADD, alarm_.get(), kAlarm, EPOLLIN | EPOLLET) ||
        !watch(EPOLL_CTL_ADD, listener_->descriptor(), kListener, EPOLLIN)) {
      return fail(system_error("serve", listener_->path(), errno));
    }
    return {};
  }

  void serve(GrpcHandler& handler) {
    CROFT_ASSERT(handler_ == nullptr);
    handler_ = &handler;
    thread_ = std::thread([this] { run(); });
  }

  void answer(std::vector<GrpcAnswer> answers) {
    std::vector<Order> orders;
    orders.reserve(answers.size());
    for (GrpcAnswer& answer : answers) orders.push_back({true, std::move(answer)});
    give(std::move(orders));
  }
  void send(GrpcCallId call, std::string message) {
    std::vector<Order> orders;
    orders.push_back({false, {call, GrpcCode::ok, {}, std::move(message)}});
    give(std::move(orders));
  }

  void stop_listening() {
    remove_file_();
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ring();
  }
  void stop(Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      stop_by_ = deadline.at_since_boot;
    }
    stop_listening();
    if (thread_.joinable()) thread_.join();
    listener_.reset();
  }

  [[nodiscard]] Counts counts() const {
    const std::lock_guard lock(counts_mutex_);
    return counts_;
  }

 private:
  /// What is to be said to a peer.
  struct Order {
    bool last = true;  ///< an answer; else one message
    GrpcAnswer what;
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
      // What is done may lead to more of it.
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
    if (stop_by_seen_) due = std::min(due, *stop_by_seen_);
    if (stuck_until_) due = std::min(due, *stuck_until_);
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
        if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(*connection);
      }
    }
    if (!events.empty()) handler_->on_batch_end();
  }

  void accept_all() {
    for (int i = 0; listener_ && i < kAcceptsInARound; ++i) {
      auto socket = listener_->accept();
      if (!socket) break;
      take(*std::move(socket));
    }
    if (listener_ && listener_->is_stuck()) {
      // Readable all the time: not to be watched for a while.
      if (watch(EPOLL_CTL_MOD, listener_->descriptor(), kListener, 0)) stuck_until_ = now_ + kStuckPause;
    }
    publish();
  }

  void take(FileDescriptor socket) {
    if (connections_.size() >= options_.connections_max) {
      ++too_many_;
      return;
    }
    const std::uint64_t number = next_number();
    const int descriptor = socket.get();
    if (!watch(EPOLL_CTL_ADD, descriptor, number, EPOLLIN | EPOLLRDHUP)) {
      ++no_descriptors_;
      return;
    }
    auto made = std::make_unique<Connection>(number, std::move(socket), *handler_, options_.session, memory_, clock_);
    Connection& connection = *made;
    connections_.emplace(number, std::move(made));
    set_due(connection, now_ + options_.greeting_max);
    // Who connects has something to say, mostly.
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
    for (int i = 0; i < kReadsInARound; ++i) {
      const ssize_t size = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
      if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) break;
      if (size <= 0) return close(connection);
      connection.session.receive(std::as_bytes(std::span(buffer_)).first(static_cast<std::size_t>(size)));
      if (connection.session.is_over() || static_cast<std::size_t>(size) < buffer_.size()) break;
    }
    touch(connection);
  }

  /// What the handler and other threads want to be said, and to be ended.
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
    for (const Order& order : orders) {
      Connection* connection = find(GrpcSession::connection_of(order.what.call));
      if (connection == nullptr) continue;
      if (order.last) {
        connection->session.answer(order.what);
      } else {
        connection->session.send(order.what.call, order.what.message);
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
    while (!due_.empty() && due_.begin()->first <= now_) {
      Connection& connection = *find(due_.begin()->second);
      if (connection.session.in_hand() > 0) {  // came in this very round
        set_due(connection, kNever);
        continue;
      }
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
    for (;;) {
      const std::string_view bytes = connection.session.unsent();
      if (bytes.empty()) return wait_for_room(connection, false);
      const ssize_t size = ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_for_room(connection, true);
      if (size < 0) return false;
      connection.session.sent(static_cast<std::size_t>(size));
    }
  }
  [[nodiscard]] bool wait_for_room(Connection& connection, bool wait) {
    if (std::exchange(connection.waits_for_room, wait) == wait) return true;
    return watch(EPOLL_CTL_MOD, connection.socket.get(), connection.number,
                 EPOLLIN | EPOLLRDHUP | (wait ? static_cast<std::uint32_t>(EPOLLOUT) : 0U));
  }

  void close(Connection& connection) {
    set_due(connection, kNever);
    connection.session.hang_up();
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
  void publish() {
    const std::lock_guard lock(counts_mutex_);
    counts_.open = connections_.size();
    counts_.too_many = too_many_;
    if (!listener_) return;
    const UnixListener::Counts& of_listener = listener_->counts();
    counts_.accepted = of_listener.accepted - too_many_ - no_descriptors_;
    counts_.foreign_users = of_listener.foreign_users;
    counts_.no_descriptors = of_listener.no_descriptors + no_descriptors_;
  }

  const GrpcServerOptions options_;
  const Clock& clock_;
  std::unique_ptr<UnixListener> listener_;
  const std::function<void()> remove_file_;
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

  // Of the loop alone.
  Nanos now_{};
  std::vector<Order> own_;  ///< by the handler
  GrpcMemory memory_;       ///< before the sessions, which count in it
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t number_ = kFirstConnection;
  std::vector<std::uint64_t> touched_;  ///< connections with something to be sent, or to be looked at
  std::set<std::pair<Nanos, std::uint64_t>> due_;
  std::optional<Nanos> stuck_until_;
  std::optional<Nanos> stop_by_seen_;
  bool done_ = false;
  std::uint64_t too_many_ = 0;
  std::uint64_t no_descriptors_ = 0;
  std::array<char, kReadBuffer> buffer_{};
};

GrpcServer::GrpcServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

GrpcServer::~GrpcServer() { loop_->stop(Deadline{Nanos{0}}); }

Result<std::unique_ptr<GrpcServer>> GrpcServer::make(std::unique_ptr<UnixListener> listener,
                                                     const GrpcServerOptions& options, const Clock& clock) {
  auto loop = std::make_unique<Loop>(std::move(listener), options, clock);
  TRY_VOID(loop->open());
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(loop)));
}

void GrpcServer::serve(GrpcHandler& handler) { loop_->serve(handler); }
void GrpcServer::answer(std::vector<GrpcAnswer> answers) { loop_->answer(std::move(answers)); }
void GrpcServer::send(GrpcCallId call, std::string message) { loop_->send(call, std::move(message)); }
void GrpcServer::stop_listening() { loop_->stop_listening(); }
void GrpcServer::stop(Deadline deadline) { loop_->stop(deadline); }
GrpcServer::Counts GrpcServer::counts() const { return loop_->counts(); }

}  // namespace croft::os
