#include "store/kube/service_account_token.h"

#include <fmt/format.h>

#include "store/kube/format/requests.h"
#include "store/kube/format/token.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {

Result<std::string> request_token(Api& api, const TokenOf& wanted, Deadline deadline) {
  TRY(const std::string path,
      wire::kube::object_path({"", "v1", "serviceaccounts"}, wanted.name_space, wanted.service_account));
  Request request;
  request.method = Request::Method::post;
  request.path = path + "/token";
  request.body = wire::kube::encode_token_request(wanted.seconds);
  request.keeps_nothing = true;
  const Answer answer = api.call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) return wire::kube::decode_token_request(answer.body);
  const std::string whose = fmt::format("{}/{}", wanted.name_space, wanted.service_account);
  Error error = Error(answer.error).in(fmt::format("a token of the service account {}", whose));
  if (lacks_right(answer)) {
    error.message +=
        fmt::format("; allow `create` of serviceaccounts/token there, as deploy/kubernetes/access.yaml does");
  }
  if (error.code == ErrorCode::not_found) error.message += "; kubectl apply -f deploy/kubernetes/access.yaml makes it";
  return fail(std::move(error));
}

TokenTaken ask_of_token(Api& api, Deadline deadline) {
  Request request;
  request.path = "/version";
  const Answer answer = api.call(request, deadline);
  if (answer.http_status == 401) return TokenTaken::refused;
  // Who is asked too much has not looked at the token.
  const bool has_looked = answer.outcome == Answer::Outcome::done || answer.http_status == 403;
  return has_looked ? TokenTaken::yes : TokenTaken::unknown;
}

}  // namespace croft::store::kube
