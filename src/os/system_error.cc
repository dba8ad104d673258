#include "os/system_error.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace croft::os {
namespace {

struct Meaning {
  ErrorCode code;
  std::string_view remedy;  ///< follows the reason; may be empty
};

Meaning meaning_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return {ErrorCode::not_found, ""};
    case EEXIST:
      return {ErrorCode::already_exists, ""};
    case EACCES:
    case EPERM:
      return {ErrorCode::permission_denied, "; run as the owner of the path or change its owner or mode"};
    case EROFS:
      return {ErrorCode::read_only, "; remount the file system read-write"};
    case ENOSPC:
      return {ErrorCode::storage_full, "; free space on the file system"};
    case EFBIG:
      return {ErrorCode::storage_full, "; raise the limit on the size of this process's files (ulimit -f)"};
    case EDQUOT:
      return {ErrorCode::storage_full, "; raise the disk quota or free space"};
    case EMFILE:
      return {ErrorCode::unavailable, "; raise the limit of open files (ulimit -n)"};
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return {ErrorCode::unavailable, ""};
    case ENOLCK:
      return {ErrorCode::unavailable, "; the file system has no file locks: use a local directory"};
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return {ErrorCode::invalid_argument, "; correct the path"};
    default:
      return {ErrorCode::internal, ""};
  }
}

}  // namespace

Error system_error(std::string_view doing, std::string_view path, int error_number) {
  const Meaning meaning = meaning_of(error_number);
  return {meaning.code,
          fmt::format("cannot {} {}: {}{}", doing, path, std::generic_category().message(error_number), meaning.remedy),
          {}};
}

}  // namespace croft::os
