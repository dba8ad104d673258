"""The runbook's commands make certificates that agents take, and one that was renewed is used without a restart.

usage: vpc_certificates.py BIN_DIR
"""

import ssl
import sys

from lib import World, expect, main, require_programs, run, wait_for
from vpc_lib import Agent, Certificates, Cloud, grpc, make_peers


def test():
    require_programs("openssl")
    with World("vpc-certificates", sys.argv[1]) as world:
        nodes = ("node-a", "node-b")
        certificates = Certificates(world, "tls", nodes)
        for purpose in ("sslserver", "sslclient"):
            run("openssl", "verify", "-x509_strict", "-purpose", purpose, "-verify_hostname", "node-a", "-CAfile",
                certificates.directory / "ca.crt", certificates.directory / "node-a.crt")
        cloud = Cloud(world, "certificates", nodes, 28)
        agents = [Agent(cloud, node, low=0, high=5) for node in nodes]
        make_peers(agents, certificates)
        agent = agents[0]
        agent.start()

        def ping():
            options = (("grpc.ssl_target_name_override", "node-a"), ("grpc.enable_http_proxy", 0))
            with grpc.secure_channel(f"127.0.0.1:{agent.port}", certificates.credentials("node-b"), options) as channel:
                channel.unary_unary("/rpc.CNIIpam/Ping")(b"", timeout=5)

        def shown():
            return ssl.get_server_certificate(("127.0.0.1", agent.port), timeout=5)

        ping()
        before = shown()
        certificates.make("node-a")
        wait_for(lambda: shown() != before, "the renewed certificate is shown")
        ping()
        expect((certificates.directory / "node-a.crt").read_text().strip() == shown().strip(), "it is the new one")


if __name__ == "__main__":
    main(test, 100)
