#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/net/echo.h"
#include "base/result.h"
#include "os/process_hash.h"
#include "store/kube/api.h"
#include "store/kube/format/api.h"
#include "store/kube/format/requests.h"

namespace croft::store::kube {

/// What a page says of the list that it is a part of.
struct ListPage {
  std::string resource_version;
  std::string continue_token;
  std::vector<std::uint64_t> objects;  ///< name_in_list() of each
};
/// Stands for an object in its list. Tenants choose the names of pods: none of them knows the key.
[[nodiscard]] inline std::uint64_t name_in_list(std::string_view name_space, std::string_view name) {
  return os::process_hash(std::string(name_space) + "/" + std::string(name));
}
[[nodiscard]] inline ListPage said_by(const wire::kube::ApiListPage& page) {
  ListPage said{page.resource_version, page.continue_token, {}};
  said.objects.reserve(page.items.size());
  for (const auto& item : page.items) said.objects.push_back(name_in_list(item.meta.name_space, item.meta.name));
  return said;
}

/// What a list may come to, all its pages together. Far above what a cluster has (docs/limits.md): a server that goes
/// on behind that sends what is none. Whoever keeps nothing of a page needs no bound of bytes.
struct ListBounds {
  std::size_t objects_max = 1'000'000;
  std::size_t bytes_max = SIZE_MAX;  ///< of their text
};

/// Keeps a list that is read page by page within bounds, whatever the server answers: a page that is too large is asked
/// for again in smaller parts, behind it they grow again, and a list that has no end is given up. Nor is a list
/// believed whose pages are of different moments or come twice: what it leaves out would count as absent.
class ListWalk {
 public:
  static constexpr std::int64_t kPagesMax = 20'000;
  /// In a row that bring nothing: a server that looks through others for a selector may have some.
  static constexpr std::int64_t kEmptyPagesMax = 1'000;
  /// A server forgets a list's moment after some minutes.
  static constexpr std::chrono::minutes kTimeMax{10};

  ListWalk(wire::kube::ApiListQuery& query, const Clock& clock, const ListBounds& bounds = {})
      : query_(query),
        clock_(clock),
        bounds_(bounds),
        limit_(query.limit),
        end_(Deadline::after(clock.now(), kTimeMax)) {}

  /// Whether an answer was too much at once, and may be less by a smaller page: then the query has one.
  [[nodiscard]] bool asks_for_less(const Answer& answer) {
    return answer.outcome == Answer::Outcome::not_done && answer.error.code == ErrorCode::invalid_argument &&
           asks_for_less();
  }
  /// The same of what its decoder says.
  [[nodiscard]] bool asks_for_less(const Error& error) {
    return error.code == wire::kube::kTooLarge && asks_for_less();
  }
  /// To be called with each page and the bytes of its text. Error: corrupt, deadline_exceeded.
  [[nodiscard]] Result<void> go_on(const ListPage& page, std::size_t bytes = 0) {
    ask_for_more();
    const bool is_first = query_.continue_token.empty();
    const std::string& token = page.continue_token;
    if (is_first) {
      resource_version_ = page.resource_version;
      objects_.clear();
      count_ = bytes_ = 0;
    } else if (page.resource_version != resource_version_) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the API server's list has pages of resourceVersion {}, and another of {}: look at the "
                              "server, and at what stands before it",
                              net::echo(resource_version_), net::echo(page.resource_version)));
    }
    TRY_VOID(count(page, bytes));
    empty_pages_ = page.objects.empty() ? empty_pages_ + 1 : 0;
    const bool has_no_end =
        !token.empty() && (token == query_.continue_token || ++pages_ >= kPagesMax || empty_pages_ >= kEmptyPagesMax);
    query_.continue_token = token;
    if (has_no_end) return fail(ErrorCode::corrupt, "the API server's list has no end; look at the server");
    // What comes as one has nothing before it that could come again.
    if (!is_first || !token.empty()) objects_.insert(objects_.end(), page.objects.begin(), page.objects.end());
    if (token.empty()) return all_once();
    if (!end_.passed(clock_.now())) return {};
    return fail(ErrorCode::deadline_exceeded, "the API server took more than ten minutes for a list");
  }

 private:
  [[nodiscard]] Result<void> count(const ListPage& page, std::size_t bytes) {
    count_ += page.objects.size();
    bytes_ += bytes;
    const bool is_many = count_ > bounds_.objects_max;
    if (!is_many && bytes_ <= bounds_.bytes_max) return {};
    return fail(ErrorCode::corrupt,
                fmt::format("the API server's list has more than {}, {} objects of {} bytes so far: more than there "
                            "can be; look at the server, and at what stands before it",
                            is_many ? fmt::format("{} objects", bounds_.objects_max)
                                    : fmt::format("{} bytes", bounds_.bytes_max),
                            count_, bytes_));
  }
  [[nodiscard]] Result<void> all_once() {
    std::ranges::sort(objects_);
    if (std::ranges::adjacent_find(objects_) == objects_.end()) return {};
    return fail(ErrorCode::corrupt,
                "the API server's list has an object twice; look at the server, and at what stands before it");
  }
  [[nodiscard]] bool asks_for_less() {
    if (query_.limit == 1) return false;
    if (is_raised_) {
      query_.limit /= 2;  // which was small enough
      patience_ = std::min(patience_ * 2, kPatienceMax);
    } else {
      query_.limit = query_.limit > 8 ? query_.limit / 8 : 1;
    }
    is_raised_ = false;
    calm_ = 0;
    return true;
  }
  /// A few large objects must not make all that come behind them cost a request for each few: after a page that was
  /// small enough twice as many are asked for, up to the first limit. Where that was too much, not before more such
  /// pages.
  void ask_for_more() {
    if (is_raised_) patience_ = std::max(1, patience_ / 2);
    is_raised_ = false;
    if (query_.limit >= limit_ || ++calm_ < patience_) return;
    query_.limit = std::min(limit_, query_.limit * 2);
    is_raised_ = true;
    calm_ = 0;
  }
  static constexpr int kPatienceMax = 16;

  wire::kube::ApiListQuery& query_;
  const Clock& clock_;
  const ListBounds bounds_;
  const std::int64_t limit_;  ///< as it was asked for first
  const Deadline end_;
  int patience_ = 1;        ///< pages before more is asked for
  int calm_ = 0;            ///< of them since the limit changed
  bool is_raised_ = false;  ///< and no page has come with it yet
  std::int64_t pages_ = 0;
  std::int64_t empty_pages_ = 0;  ///< in a row
  std::size_t count_ = 0;         ///< of objects, since the list was begun
  std::size_t bytes_ = 0;
  std::string resource_version_;        ///< of the first page
  std::vector<std::uint64_t> objects_;  ///< of all pages
};

}  // namespace croft::store::kube
