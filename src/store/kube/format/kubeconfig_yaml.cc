#include "store/kube/format/kubeconfig_yaml.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/kube/format/yaml_documents.h"

namespace croft::wire {

Result<std::string> kubeconfig_json(std::string_view yaml) {
  const auto documents = parse_yaml(yaml);
  if (!documents) return fail(documents.error().in("kubeconfig"));
  if (documents->size() != 1) {
    return fail(invalid_argument(
        documents->empty() ? std::string("kubeconfig: it is empty")
                           : fmt::format("kubeconfig: it has {} documents, one is wanted", documents->size())));
  }
  // libyaml has seen to it that texts are UTF-8; were they not, they would not be thrown about.
  return documents->front().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace croft::wire
