#include "calico/definitions.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace croft::wire {
namespace {

struct Definition {
  std::string_view kind;      ///< "IPPool"; the list's kind has List behind it
  std::string_view plural;    ///< "ippools"
  std::string_view singular;  ///< "ippool"
  std::string_view about;     ///< for `kubectl explain`
  std::string_view columns;   ///< of `kubectl get`: flow sequences, each ending with a comma
  std::string_view required;  ///< members of the spec
  std::string_view members;   ///< of the spec: YAML, each line indented by 16
};

// Types only: what a value may be is checked by who reads it. Integers of 64 bits have no upper bound in a schema.
constexpr std::array kDefinitions = {
    Definition{"IPPool", "ippools", "ippool", "Addresses that are cut into blocks.",
               "{name: CIDR, type: string, jsonPath: .spec.cidr}, "
               "{name: Block size, type: integer, jsonPath: .spec.blockSize}, "
               "{name: Disabled, type: boolean, jsonPath: .spec.disabled}, ",
               "cidr",
               R"(                cidr: {type: string, description: What the pool has.}
                blockSize: {type: integer, description: "Length of a block's prefix: 26 or 122 by default."}
                nodeSelector: {type: string, description: Labels of the nodes that may take blocks of it.}
                namespaceSelector: {type: string, description: Labels of the namespaces whose pods it is for.}
                allowedUses: {type: array, items: {type: string}, description: "Workload, Tunnel, LoadBalancer."}
                assignmentMode: {type: string, description: "Automatic, or Manual: only when it is asked for by name."}
                disabled: {type: boolean, description: No new addresses; those that are held stay good.}
                ipipMode: {type: string}
                vxlanMode: {type: string}
                natOutgoing: {type: boolean}
                disableBGPExport: {type: boolean}
)"},
    Definition{"IPAMBlock", "ipamblocks", "ipamblock", "A block: which of its addresses is whose.",
               "{name: CIDR, type: string, jsonPath: .spec.cidr}, "
               "{name: Affinity, type: string, jsonPath: .spec.affinity}, ",
               "cidr, allocations, attributes, unallocated, strictAffinity",
               R"(                cidr: {type: string}
                affinity: {type: string, nullable: true, description: "Whose the block is, as host:node-a."}
                affinityClaimTime: {type: string, nullable: true, format: date-time}
                allocations: {type: array, description: "An index into attributes for each address, or null.", items: {type: integer, nullable: true}}
                attributes: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {handle_id: {type: string, nullable: true}, secondary: {type: object, additionalProperties: {type: string}}}}}
                unallocated: {type: array, description: "Free addresses, the next first.", items: {type: integer}}
                sequenceNumber: {type: integer, format: int64, default: 0}
                sequenceNumberForAllocation: {type: object, additionalProperties: {type: integer, format: int64}}
                deleted: {type: boolean}
                strictAffinity: {type: boolean}
)"},
    Definition{"BlockAffinity", "blockaffinities", "blockaffinity", "Which node has which block.",
               "{name: Node, type: string, jsonPath: .spec.node}, {name: CIDR, type: string, jsonPath: .spec.cidr}, "
               "{name: State, type: string, jsonPath: .spec.state}, ",
               "cidr, node, state, deleted",
               R"(                cidr: {type: string}
                node: {type: string}
                type: {type: string, description: "host or virtual."}
                state: {type: string, description: "pending, confirmed or pendingDeletion."}
                deleted: {type: string}
)"},
    Definition{"IPAMHandle", "ipamhandles", "ipamhandle", "In which blocks a holder has addresses.",
               "{name: Handle, type: string, jsonPath: .spec.handleID}, ", "handleID, block",
               R"(                handleID: {type: string}
                block: {type: object, description: How many addresses of each block., additionalProperties: {type: integer}}
                deleted: {type: boolean}
)"},
    Definition{
        "IPAMConfig", "ipamconfigs", "ipamconfig", "One object, `default`: what holds for the whole cluster.",
        "{name: Strict affinity, type: boolean, jsonPath: .spec.strictAffinity}, ",
        "strictAffinity, autoAllocateBlocks",
        R"(                strictAffinity: {type: boolean, description: Nodes take no address of a block that is not theirs.}
                autoAllocateBlocks: {type: boolean}
                maxBlocksPerHost: {type: integer, minimum: 0, maximum: 2147483647}
)"},
    Definition{"IPReservation", "ipreservations", "ipreservation",
               "Addresses that are given to nobody who asks for any.", "", "",
               R"(                reservedCIDRs: {type: array, items: {type: string}}
)"},
    Definition{"ClusterInformation", "clusterinformations", "clusterinformation",
               "One object, `default`: whether the register may be written to.",
               "{name: Ready, type: boolean, jsonPath: .spec.datastoreReady}, ", "",
               R"(                datastoreReady: {type: boolean, nullable: true}
                clusterGUID: {type: string}
                clusterType: {type: string}
                calicoVersion: {type: string}
                variant: {type: string}
)"},
};

std::string definition_yaml(const Definition& definition) {
  std::string required;
  if (!definition.required.empty()) required = fmt::format("              required: [{}]\n", definition.required);
  return fmt::format(R"(---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {1}.crd.projectcalico.org
spec:
  group: crd.projectcalico.org
  scope: Cluster
  preserveUnknownFields: false
  names: {{kind: {0}, listKind: {0}List, plural: {1}, singular: {2}}}
  versions:
    - name: v1
      served: true
      storage: true
      additionalPrinterColumns: [{4}{{name: Age, type: date, jsonPath: .metadata.creationTimestamp}}]
      schema:
        openAPIV3Schema:
          type: object
          description: "{3}"
          properties:
            apiVersion: {{type: string}}
            kind: {{type: string}}
            metadata: {{type: object}}
            spec:
              type: object
              x-kubernetes-preserve-unknown-fields: true
{5}              properties:
{6}            status: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
)",
                     definition.kind, definition.plural, definition.singular, definition.about, definition.columns,
                     required, definition.members);
}

}  // namespace

std::string calico_crds_yaml() {
  std::string yaml =
      "# Calico's IPAM kinds, for a cluster that has no Calico (docs/runbooks/kubernetes-crds.md). Made by the build "
      "from\n# src/calico/definitions.cc: `croft store crds --calico-kinds`.\n";
  for (const Definition& definition : kDefinitions) yaml += definition_yaml(definition);
  return yaml;
}

}  // namespace croft::wire
