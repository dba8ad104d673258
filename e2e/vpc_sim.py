#!/usr/bin/env python3
"""A cloud for tests: UCloud's API for secondary addresses, its metadata and credentials, with a world behind them that can be
looked at and disturbed (e2e/vpc_sim.md). Whoever reaches it may do anything.

usage: croft-vpc-sim --config FILE [--listen ADDRESS:PORT]
"""

import argparse
import collections
import hashlib
import http.server
import ipaddress
import json
import os
import random
import re
import secrets
import select
import signal
import socket
import sys
import threading
import time
import urllib.parse

# Codes of the API (docs/notes/warm-pool.md#ucloud-api).
RATE_LIMITED, NO_ACTION, UNKNOWN_ACTION, NO_SIGNATURE, BAD_SIGNATURE, NO_SUCH_USER, NO_SUCH_TOKEN = 153, 160, 161, 170, 171, 172, 174
NO_PROJECT, ZONE_NOT_ALLOWED, EXHAUSTED, NO_SUCH_ADDRESS = 292, 293, 57000, 58221
# Codes of this simulator where the API's own are not known; nobody may rely on them.
BAD_PARAMETER, TAKEN, WRONG_SUBNET = 59001, 59002, 59003
CREDENTIALS = "meta-data/v1/uam/security-credentials/Uk8sServiceCharacter"
EVENTS_MAX, FAULTS_MAX, BATCH_MAX = 100_000, 1000, 256
NAME = re.compile(r"[A-Za-z0-9_.@-]{1,63}")
Node = collections.namedtuple("Node", "name mac subnet address instance interface")
Subnet = collections.namedtuple("Subnet", "id range gateway")


class Refused(Exception):
    """A RetCode with its message; or, of a control, why not."""

    def __init__(self, code, message=""):
        super().__init__(message)
        self.code, self.message = code, message


def milliseconds():
    """Since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def mac_of(text):
    return text.lower() if re.fullmatch(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}", text or "") else None


def address_of(text):
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def form_of(body):
    parameters = urllib.parse.parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body), max_num_fields=512)
    if len(dict(parameters)) != len(parameters):
        raise ValueError("a form has a parameter twice")
    return dict(parameters)


def signature_of(parameters, private_key):
    text = "".join(name + value for name, value in sorted(parameters.items()) if name != "Signature")
    return hashlib.sha1((text + private_key).encode()).hexdigest()


class World:
    """Who has which address, and all that has happened. `lock` guards all of it."""

    def __init__(self, config):
        defaults = {"region": "cn-sim1", "zone": "cn-sim1-01", "project": "org-sim", "vpc": "uvnet-sim", "publicKey": "sim-public",
                    "privateKey": "sim-private", "tokenLifeSeconds": 3600, "latencyMaxMs": 0}
        unknown = set(config) - set(defaults) - {"subnets", "nodes"}
        if unknown:
            raise ValueError(f"{min(unknown)}: there is no such member")
        self.config = defaults | config
        self.lock = threading.Lock()
        self.subnets = {one["id"]: Subnet(one["id"], ipaddress.ip_network(one["range"]), ipaddress.ip_address(one["gateway"]))
                        for one in config["subnets"]}
        self.nodes = {}
        for one in config["nodes"]:
            name, address = one["name"], one.get("address")
            if not NAME.fullmatch(name) or name in self.nodes or one["subnet"] not in self.subnets or not mac_of(one["mac"]):
                raise ValueError(f"nodes: {name!r} is no name, comes twice, or has no subnet or MAC")
            self.nodes[name] = Node(name, mac_of(one["mac"]), one["subnet"], address and ipaddress.ip_address(address),
                                    f"uhost-{name}", f"uni-{name}")
        self.own = {(node.subnet, node.address) for node in self.nodes.values() if node.address}
        self.held = {}  # (subnet, address): (mac, since)
        self.tokens = {}  # token: (public key, private key, until)
        self.buckets = {}  # action: [tokens, at, per second, burst]
        self.exhausted, self.faults, self.fail_items, self.outage = set(), [], 0, "off"
        self.latency = (0, self.config["latencyMaxMs"])
        self.list_lag = 0  # ms
        self.events, self.calls, self.folded = collections.deque(), collections.deque(maxlen=EVENTS_MAX), {}

    def may_have(self, subnet, address):
        network = subnet.range
        return address in network and address not in (network[0], network[-1], subnet.gateway) and \
            (subnet.id, address) not in self.own

    def free_in(self, subnet):
        if subnet.id in self.exhausted:
            return None
        number = int(subnet.range[0]) + 1
        while number < int(subnet.range[-1]):
            address = type(subnet.range[0])(number)
            if (subnet.id, address) not in self.held and self.may_have(subnet, address):
                return address
            number += 1
        return None

    def free_count(self, subnet):
        if subnet.id in self.exhausted:
            return 0
        taken = sum(place[0] == subnet.id for place in self.held) + sum(place[0] == subnet.id for place in self.own)
        return max(min(subnet.range.num_addresses, 1_000_000) - taken - 3, 0)

    def set(self, what, place, mac):
        now = milliseconds()
        before = self.held.get(place)
        if mac:
            self.held[place] = (mac, now)
        else:
            del self.held[place]
        self.events.append((now, what, place, before and before[0], mac))
        if len(self.events) > EVENTS_MAX:
            self.fold(self.folded, self.events.popleft())

    @staticmethod
    def fold(into, event):
        if event[4]:
            into[event[2]] = event[4]
        else:
            into.pop(event[2], None)

    def node_of(self, mac):
        return next((node for node in self.nodes.values() if node.mac == mac), None)

    # ---------------------------------------------------------------- the API

    def plan(self, action):
        """How long a call takes before and after it is done, and what goes wrong with it."""
        latency = random.uniform(*self.latency) / 2000
        for fault in self.faults:
            if fault["action"] in ("*", action):
                fault["count"] -= 1
                if fault["count"] == 0:
                    self.faults.remove(fault)
                return latency, fault
        return latency, None

    def api(self, parameters, fault):
        """The status and the answer; None: it is lost."""
        action = parameters.get("Action", "")[:64]
        code, message, members, told = 0, "", {}, ""
        if fault and (not fault["committed"] or fault["kind"] == "hang"):
            told = "not done"
        else:
            try:
                self.admit(parameters)
                members = getattr(self, f"do_{action}")(parameters) or {}
                told = "done, but not told" if fault else ""
            except Refused as refused:
                code, message = refused.code, refused.message
        if fault and fault["kind"] == "ret_code":
            code, message, members = fault["value"], "as told", {}
        self.calls.append((milliseconds(), action, code, told))
        if fault and fault["kind"] in ("lose", "hang"):
            return None
        if fault and fault["kind"] == "http":
            return fault["value"], ""
        return 200, json.dumps({"RetCode": code, "Action": f"{action}Response", "Message": message} | members)

    def admit(self, parameters):
        action = parameters.get("Action", "")
        if not action:
            raise Refused(NO_ACTION, "Missing Action")
        if not hasattr(self, f"do_{action}"):
            raise Refused(UNKNOWN_ACTION, "Unknown Action")
        if not parameters.get("Signature"):
            raise Refused(NO_SIGNATURE, "Missing signature")
        user, token, secret = parameters.get("PublicKey", ""), parameters.get("SecurityToken", ""), self.config["privateKey"]
        if not token and user != self.config["publicKey"]:
            raise Refused(NO_SUCH_USER, "User not found")
        if token:
            public, secret, until = self.tokens.get(token, ("", "", 0))
            if until <= time.time() or public != user:
                raise Refused(NO_SUCH_TOKEN, "Token not found")
        if signature_of(parameters, secret) != parameters["Signature"]:
            raise Refused(BAD_SIGNATURE, "Signature VerifyAC Error")
        if parameters.get("ProjectId", "") not in ("", self.config["project"]):
            raise Refused(NO_PROJECT, "Project not exist")
        if parameters.get("Region") != self.config["region"]:
            raise Refused(BAD_PARAMETER, "Region")
        if parameters.get("Zone", "") not in ("", self.config["zone"]):
            raise Refused(ZONE_NOT_ALLOWED, "Zone")
        now = milliseconds()
        bucket = self.buckets.setdefault(action, [20, now, 0, 20])
        if bucket[2] <= 0:
            return
        bucket[0] = min(bucket[3], bucket[0] + bucket[2] * (now - bucket[1]) / 1000)
        bucket[1] = now
        if bucket[0] < 1:
            raise Refused(RATE_LIMITED, "Request was limited")
        bucket[0] -= 1

    def ip_info(self, place, mac):
        subnet, address = self.subnets[place[0]], place[1]
        mask = str(subnet.range.netmask) if address.version == 4 else str(subnet.range.prefixlen)
        return {"Ip": str(address), "Mask": mask, "Gateway": str(subnet.gateway), "Mac": mac.upper(), "SubnetId": place[0],
                "VPCId": self.config["vpc"]}

    def target(self, parameters):
        node = self.node_of(mac_of(parameters.get("Mac", "")))
        if node is None:
            raise Refused(BAD_PARAMETER, "Mac")
        if parameters.get("ObjectId") not in (node.instance, node.interface):
            raise Refused(BAD_PARAMETER, "ObjectId")
        if parameters.get("SubnetId") != node.subnet:
            raise Refused(WRONG_SUBNET, "SubnetId")
        return node, self.subnets[node.subnet]

    def do_AllocateSecondaryIp(self, parameters):
        node, subnet = self.target(parameters)
        address = self.free_in(subnet)
        if parameters.get("Ip"):
            address = address_of(parameters["Ip"])
            if address is None or not self.may_have(subnet, address):
                raise Refused(BAD_PARAMETER, "Ip")
            if (subnet.id, address) in self.held:
                raise Refused(TAKEN, "Ip in use")
        if address is None:
            raise Refused(EXHAUSTED, "No enough ip")
        self.set(parameters["Action"], (subnet.id, address), node.mac)
        return {"IpInfo": self.ip_info((subnet.id, address), node.mac)}

    def do_AllocateBatchSecondaryIp(self, parameters):
        node, subnet = self.target(parameters)
        count = parameters.get("Count", "")
        if not count.isdigit() or not 1 <= int(count) <= BATCH_MAX:
            raise Refused(BAD_PARAMETER, "Count")
        if self.free_in(subnet) is None:
            raise Refused(EXHAUSTED, "No enough ip")
        items = []
        for _ in range(int(count)):
            fails = self.fail_items > 0
            self.fail_items -= fails
            address = None if fails else self.free_in(subnet)
            if address is None:
                items.append({"Ip": "", "Status": {"StatusCode": "Failed", "Message": "no ip"}})
                continue
            self.set(parameters["Action"], (subnet.id, address), node.mac)
            items.append(self.ip_info((subnet.id, address), node.mac) | {"Status": {"StatusCode": "Succeeded", "Message": ""}})
        return {"IpsInfo": items}

    def place_held_by(self, parameters, mac):
        place = parameters.get("SubnetId", ""), address_of(parameters.get("Ip", ""))
        if place[1] is None or mac is None:
            raise Refused(BAD_PARAMETER, "Ip or Mac")
        if place not in self.held or self.held[place][0] != mac:
            raise Refused(NO_SUCH_ADDRESS, "Secondary ip not exist")
        return place

    def do_DeleteSecondaryIp(self, parameters):
        self.set(parameters["Action"], self.place_held_by(parameters, mac_of(parameters.get("Mac", ""))), None)

    def do_MoveSecondaryIPMac(self, parameters):
        to = mac_of(parameters.get("NewMac", ""))
        if to is None:
            raise Refused(BAD_PARAMETER, "NewMac")
        place = self.place_held_by(parameters, mac_of(parameters.get("OldMac", "")))
        node = self.node_of(to)
        if node is None or node.subnet != place[0]:
            raise Refused(WRONG_SUBNET, "NewMac is not in the subnet")
        self.set(parameters["Action"], place, to)

    def do_DescribeSecondaryIp(self, parameters):
        subnet, mac, ip = (parameters.get(name, "") for name in ("SubnetId", "Mac", "Ip"))
        if (mac and not mac_of(mac)) or (ip and not address_of(ip)) or subnet not in self.subnets:
            raise Refused(BAD_PARAMETER, "SubnetId, Mac or Ip")
        held = {place: holding[0] for place, holding in self.held.items()}
        if self.list_lag and not ip:
            held, until = dict(self.folded), milliseconds() - self.list_lag
            for event in self.events:
                if event[0] <= until:
                    self.fold(held, event)
        return {"DataSet": [self.ip_info(place, holder) for place, holder in sorted(held.items())
                            if place[0] == subnet and (not mac or holder == mac_of(mac)) and
                            (not ip or place[1] == address_of(ip))]}

    def do_DescribeSubnet(self, parameters):
        subnet = self.subnets.get(parameters.get("SubnetId"))
        if subnet is None:
            return {"TotalCount": 0, "DataSet": []}
        return {"TotalCount": 1, "DataSet": [{
            "SubnetId": subnet.id, "Subnet": str(subnet.range[0]), "Netmask": str(subnet.range.prefixlen),
            "Gateway": str(subnet.gateway), "AvailableIPs": self.free_count(subnet), "VPCId": self.config["vpc"], "Zone": self.config["zone"]}]}

    def do_DescribeUHostInstance(self, parameters):
        hosts = [{"UHostId": node.instance, "IPSet": [{"Default": "true", "Mac": node.mac.upper(), "SubnetId": node.subnet,
                                                       "NetworkInterfaceId": node.interface, "VPCId": self.config["vpc"]}]}
                 for node in self.nodes.values() if node.instance == parameters.get("UHostIds.0")]
        return {"TotalCount": len(hosts), "UHostSet": hosts}

    # ---------------------------------------------------------------- metadata and controls

    def metadata(self, target):
        name, _, path = target.lstrip("/").partition("/")
        node = self.nodes.get(name)
        if node is None:
            return None
        if path == "meta-data/v1.json":
            interface = {"default": True, "id": node.interface, "mac": node.mac.upper(), "subnet-id": node.subnet,
                         "vpc-id": self.config["vpc"], "ips": []}
            return {"availability-zone": self.config["zone"], "instance-id": node.instance, "region": self.config["region"],
                    "uhost": {"cpu": 4, "project-id": self.config["project"], "network-interfaces": [interface]}}
        if path != CREDENTIALS:
            return None
        until = int(time.time()) + self.config["tokenLifeSeconds"]
        public, private, token = "sts-" + secrets.token_hex(16), secrets.token_hex(16), secrets.token_hex(16)
        self.tokens = {one: what for one, what in self.tokens.items() if what[2] > time.time()} | {token: (public, private, until)}
        return {"RetCode": 0, "Message": "", "Data": {
            "Expiration": until, "PublicKey": public, "PrivateKey": private, "SecurityToken": token,
            "ProjectID": self.config["project"], "UHostID": node.instance}}

    def check(self):
        """What contradicts itself."""
        wrong = []
        for (subnet, address), holding in self.held.items():
            node = self.node_of(holding[0])
            if not self.may_have(self.subnets[subnet], address):
                wrong.append(f"{subnet} {address} is no address of its subnet")
            if node is None or node.subnet != subnet:
                wrong.append(f"{subnet} {address} belongs to nobody's interface, or to one elsewhere")
        folded = dict(self.folded)
        for event in self.events:
            if folded.get(event[2]) != event[3]:
                wrong.append(f"{event[1]} of {event[2][1]} found another holder than there was")
            self.fold(folded, event)
        if folded != {place: holding[0] for place, holding in self.held.items()}:
            wrong.append("what happened does not come to what there is")
        return wrong

    def truth(self):
        now = milliseconds()
        nodes = {node.mac: node.name for node in self.nodes.values()}
        return {"nowMs": now,
                "addresses": [{"subnet": subnet, "ip": str(address), "mac": mac, "node": nodes.get(mac, ""), "sinceMs": since}
                              for (subnet, address), (mac, since) in sorted(self.held.items())],
                "events": [{"atMs": at, "what": what, "subnet": place[0], "ip": str(place[1]), "from": before or "", "to": to or ""}
                           for at, what, place, before, to in self.events],
                "calls": [{"atMs": at, "action": action, "retCode": code, "fault": fault} for at, action, code, fault in self.calls]}

    def control(self, what, form):
        def number(name, otherwise):
            text = form.get(name, "")
            if not text:
                return otherwise
            if not text.isdigit() or int(text) > 10**10:
                raise Refused(400, f"{name} is no number")
            return int(text)

        def node():
            if form.get("node") not in self.nodes:
                raise Refused(400, "node: there is none")
            return self.nodes[form["node"]]
        control = f"/sim/{what}"
        if what == "truth":
            return self.truth()
        if what == "check":
            return self.check()
        if what == "latency":
            self.latency = number("min_ms", 0), number("max_ms", number("min_ms", 0))
        elif what == "list-lag":
            self.list_lag = number("ms", 0)
        elif what == "rate":
            burst = max(number("burst", 1), 1)
            if not form.get("action"):
                raise Refused(400, "action: which?")
            self.buckets[form["action"]] = [burst, milliseconds(), number("per_minute", 0) / 60, burst]
        elif what == "fault":
            fault = {"kind": form.get("kind"), "action": form.get("action", ""), "value": number("value", 0),
                     "committed": form.get("committed") != "false", "count": number("count", 1)}
            if fault["kind"] not in ("lose", "hang", "ret_code", "http") or not fault["action"] or fault["count"] == 0 or \
                    (fault["kind"] == "http" and not 400 <= fault["value"] <= 599) or len(self.faults) >= FAULTS_MAX:
                raise Refused(400, "kind: lose, hang, ret_code or http; action; count; value of http: 400 to 599")
            self.faults.append(fault)
        elif what == "fail-items":
            self.fail_items = number("count", 1)
        elif what == "heal":
            self.faults, self.exhausted, self.fail_items, self.outage = [], set(), 0, "off"
        elif what == "outage":
            if form.get("mode") not in ("refuse", "hang", "off"):
                raise Refused(400, "mode: refuse, hang or off")
            self.outage = form["mode"]
        elif what == "exhaust":
            if form.get("subnet") not in self.subnets:
                raise Refused(400, "subnet: there is none")
            (self.exhausted.discard if form.get("on") == "false" else self.exhausted.add)(form["subnet"])
        elif what == "expire-tokens":
            self.tokens = {}
        elif what == "delete-address":
            place = form.get("subnet"), address_of(form.get("ip", ""))
            if place not in self.held:
                raise Refused(400, "subnet, ip: nobody has it")
            self.set(control, place, None)
        elif what == "delete-node":
            gone = self.nodes.pop(node().name)
            for place in [place for place, holding in self.held.items() if holding[0] == gone.mac]:
                self.set(control, place, None)
        elif what == "replace-interface":
            before, mac = node(), mac_of(form.get("mac", ""))
            if mac is None or self.node_of(mac):
                raise Refused(400, "mac: it is none, or another interface's")
            self.nodes[before.name] = before._replace(mac=mac)
            for place in [place for place, holding in self.held.items() if holding[0] == before.mac]:
                self.set(control, place, mac if form.get("along") != "false" else None)
        else:
            raise Refused(404, "no such path")
        return {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet, as a cloud's is
    world = None

    def log_message(self, *arguments):  # pylint: disable=arguments-differ
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, status, body):
        data = body.encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def drop(self, hangs=False):
        """No answer; with `hangs` once whoever asked has gone."""
        if hangs:
            select.select([self.connection], [], [])
        self.close_connection = True

    def do_GET(self):
        self.answer("")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def answer(self, body):
        world = self.world
        if self.path.startswith("/sim/"):
            try:
                with world.lock:
                    answer = json.dumps(world.control(self.path.removeprefix("/sim/"), form_of(body)))
                return self.send(200, answer)
            except Refused as refused:
                return self.send(refused.code, refused.message + "\n")
            except ValueError as error:
                return self.send(400, f"{error}\n")
        if world.outage != "off":
            return self.drop(world.outage == "hang")
        if self.command == "GET":
            with world.lock:
                answer = world.metadata(self.path)
            return self.send(404 if answer is None else 200, "" if answer is None else json.dumps(answer))
        try:
            parameters = form_of(body)
        except ValueError as error:
            return self.send(400, str(error))
        with world.lock:
            latency, fault = world.plan(parameters.get("Action", ""))
        time.sleep(latency)  # what was asked is done even when who asked has gone
        with world.lock:
            answer = world.api(parameters, fault)
        if fault and fault["kind"] == "hang":
            return self.drop(hangs=True)
        time.sleep(latency)
        return self.drop() if answer is None else self.send(*answer)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 512

    def __init__(self, where):
        host, _, port = where.rpartition(":")
        host = host.strip("[]")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, int(port)), Handler)

    def handle_error(self, request, client_address):
        pass  # whoever asked has gone

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        socket.socket.bind(self.socket, self.server_address)  # without asking for a name
        self.server_address = self.socket.getsockname()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--config", required=True)
    options = parser.parse_args()
    try:
        with open(options.config, encoding="utf-8") as file:
            Handler.world = World(json.load(file))
        server = Server(options.listen)
    except (OSError, ValueError, KeyError) as error:
        print(f"croft-vpc-sim: {options.config}: {error!r}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    host, port = server.server_address[:2]
    print(f"listening on {f'[{host}]' if ':' in host else host}:{port}", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
