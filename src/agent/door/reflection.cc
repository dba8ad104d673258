#include "agent/door/reflection.h"

#include <array>
#include <set>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpc/reflection_v1.pb.h>
#include <grpc/reflection_v1alpha.pb.h>

#include "agent/door/health.h"
#include "http/grpc_frame.h"

namespace croft::edge {
namespace {

namespace reflection_pb = ::grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

constexpr std::array<std::string_view, 2> kReflectionServices = {"grpc.reflection.v1.ServerReflection",
                                                                 "grpc.reflection.v1alpha.ServerReflection"};
constexpr std::string_view kInfoMethod = "ServerReflectionInfo";

/// The file, behind the files that it imports.
void add_file(const FileDescriptor& file, std::set<std::string>& added, reflection_pb::FileDescriptorResponse& to) {
  if (!added.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  to.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) add_file(*file.dependency(i), added, to);
}

void answer_error(os::GrpcCode code, std::string text, reflection_pb::ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(code));
  response.mutable_error_response()->set_error_message(std::move(text));
}

void answer_file(const FileDescriptor* file, reflection_pb::ServerReflectionResponse& response) {
  if (file == nullptr) return answer_error(os::GrpcCode::not_found, "there is no such file or symbol", response);
  std::set<std::string> added;
  add_file(*file, added, *response.mutable_file_descriptor_response());
}

void list_services(std::string_view own, reflection_pb::ListServiceResponse& to) {
  to.add_service()->set_name(std::string(own));
  to.add_service()->set_name(std::string(GrpcHealth::kServiceName));
  for (const std::string_view name : kReflectionServices) to.add_service()->set_name(std::string(name));
}

}  // namespace

bool is_reflection(std::string_view method) {
  for (const std::string_view service : kReflectionServices) {
    if (method.size() == service.size() + kInfoMethod.size() + 2 && method.front() == '/' &&
        method.substr(1, service.size()) == service && method[service.size() + 1] == '/' &&
        method.ends_with(kInfoMethod)) {
      return true;
    }
  }
  return false;
}

Result<std::string> reflect(std::string_view message, std::string_view service) {
  // The other version's messages are looked up by name only: they have to be in the program.
  google::protobuf::LinkMessageReflection<::grpc::reflection::v1alpha::ServerReflectionRequest>();
  reflection_pb::ServerReflectionRequest request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return fail(ErrorCode::invalid_argument, "this is no ServerReflectionRequest");
  }
  reflection_pb::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case reflection_pb::ServerReflectionRequest::kListServices:
      list_services(service, *response.mutable_list_services_response());
      break;
    case reflection_pb::ServerReflectionRequest::kFileByFilename:
      answer_file(pool.FindFileByName(request.file_by_filename()), response);
      break;
    case reflection_pb::ServerReflectionRequest::kFileContainingSymbol:
      answer_file(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
      break;
    case reflection_pb::ServerReflectionRequest::kFileContainingExtension:
    case reflection_pb::ServerReflectionRequest::kAllExtensionNumbersOfType:
      answer_error(os::GrpcCode::not_found, "there are no extensions", response);
      break;
    case reflection_pb::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      answer_error(os::GrpcCode::unimplemented, "nothing that is known was asked for", response);
      break;
  }
  return response.SerializeAsString();
}

}  // namespace croft::edge
