#include "app/croft/data.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "app/croft/json_text.h"
#include "wire/manifests/yaml_documents.h"

namespace croft::app {

Data::Data(nlohmann::ordered_json value) : value_(std::make_shared<const nlohmann::ordered_json>(std::move(value))) {}

std::string Data::json() const { return value_ == nullptr ? std::string() : printed_json(*value_); }

std::string Data::yaml() const { return value_ == nullptr ? std::string() : wire::yaml_text(*value_); }

}  // namespace croft::app
