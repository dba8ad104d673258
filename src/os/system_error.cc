#include "os/system_error.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include "base/texts.h"

namespace croft::os {
namespace {

struct Meaning {
  int error_number;
  ErrorCode code;
  std::string_view remedy = {};  ///< follows the reason
};

constexpr std::string_view kPath = "; correct the path";
constexpr std::string_view kRights = "; run as the owner of the path or change its owner or mode";
constexpr Meaning kMeanings[] = {
    {ENOENT, ErrorCode::not_found},
    {EEXIST, ErrorCode::already_exists},
    {EACCES, ErrorCode::permission_denied, kRights},
    {EPERM, ErrorCode::permission_denied, kRights},
    {EROFS, ErrorCode::read_only, "; remount the file system read-write"},
    {ENOSPC, ErrorCode::storage_full, "; free space on the file system"},
    {EFBIG, ErrorCode::storage_full, "; raise the limit on the size of this process's files (ulimit -f)"},
    {EDQUOT, ErrorCode::storage_full, "; raise the disk quota or free space"},
    {EMFILE, ErrorCode::unavailable, "; raise the limit of open files (ulimit -n)"},
    {ENFILE, ErrorCode::unavailable},
    {ENOMEM, ErrorCode::unavailable},
    {EAGAIN, ErrorCode::unavailable},
    {ENOLCK, ErrorCode::unavailable, "; the file system has no file locks: use a local directory"},
    {ENOTDIR, ErrorCode::invalid_argument, kPath},
    {EISDIR, ErrorCode::invalid_argument, kPath},
    {ELOOP, ErrorCode::invalid_argument, kPath},
    {ENAMETOOLONG, ErrorCode::invalid_argument, kPath},
};

}  // namespace

Error system_error(std::string_view doing, std::string_view path, int error_number) {
  const auto* const known = std::ranges::find(kMeanings, error_number, &Meaning::error_number);
  const Meaning meaning = known != std::end(kMeanings) ? *known : Meaning{error_number, ErrorCode::internal};
  return make_error(meaning.code, "cannot {} {}: {}{}", doing, path, std::generic_category().message(error_number),
                    meaning.remedy);
}

}  // namespace croft::os
