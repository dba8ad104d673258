#include "wire/cni_config_parts.h"

#include <algorithm>
#include <array>

namespace croft::wire::cni {
namespace {

using net::AddressWithLength;

// ---- valid attachments

struct AttachmentLists {
  ValidAttachments by_name, by_old_name;
};

MaybeFault read_attachment(const JsonAt& at, Attachment& out) {
  static constexpr std::array<JsonMember<Attachment>, 2> kMembers = {
      {{"containerID",
        [](const JsonAt& a, Attachment& into) { return read_text(a, kPathBytesMax, into.container_id); }},
       {"ifname", [](const JsonAt& a, Attachment& into) { return read_text(a, kPathBytesMax, into.interface_name); }}}};
  if (auto fault = read_object<Attachment>(at, kMembers, out)) return fault;
  // A gap in the list of what lives must not free anything.
  if (out.container_id.empty()) return at.bad_value("has no containerID");
  if (out.interface_name.empty()) return at.bad_value("has no ifname");
  return {};
}

MaybeFault read_attachments(const JsonAt& at, ValidAttachments& out) {
  out.presence = at.value.is_null() ? ValidAttachments::Presence::null : ValidAttachments::Presence::given;
  return read_list<Attachment>(at, kAttachmentsMax, read_attachment, out.entries);
}

ValidAttachments united(ValidAttachments a, const ValidAttachments& b) {
  a.presence = std::max(a.presence, b.presence);
  a.entries.insert(a.entries.end(), b.entries.begin(), b.entries.end());
  std::sort(a.entries.begin(), a.entries.end());
  a.entries.erase(std::unique(a.entries.begin(), a.entries.end()), a.entries.end());
  return a;
}

// ---- prevResult

MaybeFault read_previous_ip(const JsonAt& at, AddressWithLength& out) {
  static constexpr std::array<JsonMember<AddressWithLength>, 1> kMembers = {
      {{"address", [](const JsonAt& a, AddressWithLength& into) -> MaybeFault {
          std::string text;
          if (auto fault = read_text(a, kPathBytesMax, text)) return fault;
          const auto parsed = AddressWithLength::parse(text);
          if (!parsed) return a.bad_value(parsed.error().message);
          into = *parsed;
          return {};
        }}}};
  if (auto fault = read_object<AddressWithLength>(at, kMembers, out)) return fault;
  if (!out.address.is_valid()) return at.bad_value("has no address");
  return {};
}

MaybeFault read_previous_result(const JsonAt& at, std::vector<AddressWithLength>& out) {
  static constexpr std::array<JsonMember<std::vector<AddressWithLength>>, 1> kMembers = {
      {{"ips", [](const JsonAt& a, std::vector<AddressWithLength>& into) {
          return read_list<AddressWithLength>(a, kPreviousAddressesMax, read_previous_ip, into);
        }}}};
  return read_object<std::vector<AddressWithLength>>(at, kMembers, out);
}

}  // namespace

MaybeFault read_valid_attachments(const JsonAt& root, ValidAttachments& out) {
  static constexpr std::array<JsonMember<AttachmentLists>, 2> kMembers = {
      {{"cni.dev/valid-attachments",
        [](const JsonAt& a, AttachmentLists& lists) { return read_attachments(a, lists.by_name); }},
       {"cni.dev/attachments",
        [](const JsonAt& a, AttachmentLists& lists) { return read_attachments(a, lists.by_old_name); }}}};
  AttachmentLists lists;
  if (auto fault = read_object<AttachmentLists>(root, kMembers, lists)) return fault;
  out = united(std::move(lists.by_name), lists.by_old_name);
  return {};
}

MaybeFault read_previous_addresses(const JsonAt& root, std::vector<AddressWithLength>& out) {
  static constexpr std::array<JsonMember<std::vector<AddressWithLength>>, 1> kMembers = {
      {{"prevResult", read_previous_result}}};
  return read_object<std::vector<AddressWithLength>>(root, kMembers, out);
}

}  // namespace croft::wire::cni
