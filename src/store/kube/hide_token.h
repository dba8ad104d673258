#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {

/// What a text has instead of the token.
inline constexpr std::string_view kHiddenToken = "(our token)";

/// Takes a bearer token of ours out of a text of a server, which may repeat what it was sent, as debugging proxies do:
/// each occurrence, also with JSON's escapes (`\/`, `\u002e`), and what is left of one that was cut off, of 24 bytes or
/// more. Tokens of less than 8 bytes are parts of words and left. Nothing is done about what a server encodes
/// otherwise.
void hide_token(std::string_view token, std::string& text);
/// The same in all texts of an error and of a status.
void hide_token(std::string_view token, Error& error);
void hide_token(std::string_view token, wire::kube::ApiStatus& status);
/// The same of whole tokens alone: in what is to be read on, of which a part that looks like ours may be another's.
void hide_whole_token(std::string_view token, std::string& text);

}  // namespace croft::store::kube
