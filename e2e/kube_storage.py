"""What a kube-apiserver keeps in etcd, read and written by hand from the description of the formats: protobuf or JSON, bitmaps."""

import base64
import ipaddress
import json

from protobuf import field, fields_of

MAGIC = b"k8s\0"


def _text(message, number):
    return message[number][-1].decode() if number in message else ""


def _number(message, number):
    return message.get(number, [0])[-1]


def unwrap(value):
    """(apiVersion, kind, the message inside) of a value in protobuf form."""
    if not value.startswith(MAGIC):
        raise ValueError(f"not Kubernetes' protobuf: {value[:16]!r}")
    unknown = fields_of(value[len(MAGIC):])
    meta = fields_of(unknown[1][-1])
    return _text(meta, 1), _text(meta, 2), fields_of(unknown[2][-1])


# ---------------------------------------------------------------- ranges

class Range:
    """A RangeAllocation: its text, its data, and which numbers or addresses are in use."""

    def __init__(self, text, data):
        self.text, self.data = text, data

    @classmethod
    def decode(cls, value):
        if value.startswith(MAGIC):
            version, kind, message = unwrap(value)
            text, data = _text(message, 2), message.get(3, [b""])[-1]
        else:
            document = json.loads(value)
            version, kind = document["apiVersion"], document["kind"]
            text, data = document["range"], base64.b64decode(document["data"] or "", validate=True)
        if (version, kind) != ("v1", "RangeAllocation"):
            raise ValueError(f"not a RangeAllocation: {version} {kind}")
        return cls(text, data)

    @classmethod
    def of(cls, text, members):
        """The range that holds just these."""
        empty = cls(text, b"")
        bits = sum(1 << empty.offset(member) for member in set(members))
        return cls(text, bits.to_bytes((bits.bit_length() + 7) // 8, "big"))

    def encode(self):
        """The protobuf form with empty metadata, byte for byte as a kube-apiserver writes it."""
        metadata = bytes.fromhex("0a0012001a0022002a00320038004200")
        message = field(1, metadata) + field(2, self.text.encode()) + field(3, self.data)
        kind = field(1, b"v1") + field(2, b"RangeAllocation")
        return MAGIC + field(1, kind) + field(2, message) + field(3, b"") + field(4, b"")

    @property
    def base(self):
        """What offset 0 stands for: the first port, or the address after the network's own."""
        if "/" in self.text:
            return ipaddress.ip_network(self.text).network_address + 1
        return int(self.text.split("-")[0])

    def offset(self, member):
        base = self.base
        return member - base if isinstance(base, int) else int(ipaddress.ip_address(member)) - int(base)

    @property
    def members(self):
        """The ports, or the addresses as text, whose bit is set."""
        bits, base = int.from_bytes(self.data, "big"), self.base
        values = [base + offset for offset in range(bits.bit_length()) if bits >> offset & 1]
        return {value if isinstance(value, int) else str(value) for value in values}


# ---------------------------------------------------------------- objects

def addresses_of(service):
    """The addresses that a Service of the REST API holds."""
    spec = service["spec"]
    listed = spec.get("clusterIPs") or [spec.get("clusterIP", "")]
    return {a for a in listed if a not in ("", "None")}


def ports_of(service):
    """The node ports that a Service of the REST API holds; one number in two protocols is one port."""
    spec = service["spec"]
    listed = [port.get("nodePort", 0) for port in spec.get("ports", [])] + [spec.get("healthCheckNodePort", 0)]
    return {number for number in listed if number}


def decode_service(value):
    """As much of a stored Service as the two functions above need, in the form of the REST API."""
    if not value.startswith(MAGIC):
        return json.loads(value)
    version, kind, message = unwrap(value)
    if (version, kind) != ("v1", "Service"):
        raise ValueError(f"not a Service: {version} {kind}")
    metadata, spec = fields_of(message[1][-1]), fields_of(message[2][-1])
    ports = [fields_of(port) for port in spec.get(1, [])]
    return {
        "metadata": {"name": _text(metadata, 1), "namespace": _text(metadata, 3)},
        "spec": {
            "type": _text(spec, 4),
            "clusterIP": _text(spec, 3),
            "clusterIPs": [address.decode() for address in spec.get(18, [])],
            "healthCheckNodePort": _number(spec, 12),
            "ports": [{"protocol": _text(p, 2), "port": _number(p, 3), "nodePort": _number(p, 5)} for p in ports],
        },
    }


def decode_ip_address(value):
    """(apiVersion, address, (resource, namespace, name) of what holds it)."""
    if not value.startswith(MAGIC):
        document = json.loads(value)
        parent = document["spec"]["parentRef"]
        return (document["apiVersion"], document["metadata"]["name"],
                (parent["resource"], parent.get("namespace", ""), parent["name"]))
    version, kind, message = unwrap(value)
    if kind != "IPAddress":
        raise ValueError(f"not an IPAddress: {kind}")
    parent = fields_of(fields_of(message[2][-1])[1][-1])
    return version, _text(fields_of(message[1][-1]), 1), (_text(parent, 2), _text(parent, 3), _text(parent, 4))


def decode_service_cidr(value):
    """(apiVersion, name, CIDRs)."""
    if not value.startswith(MAGIC):
        document = json.loads(value)
        return document["apiVersion"], document["metadata"]["name"], document["spec"]["cidrs"]
    version, kind, message = unwrap(value)
    if kind != "ServiceCIDR":
        raise ValueError(f"not a ServiceCIDR: {kind}")
    return version, _text(fields_of(message[1][-1]), 1), [c.decode() for c in fields_of(message[2][-1]).get(1, [])]
