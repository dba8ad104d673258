"""The first pools of a cluster, as kubeadm has them, made once however many nodes ask. What is refused: operator_test.cc, kube_rights.py;
a pool that is being deleted: pool_status_test.cc."""

import json
import os
import subprocess

from kube_store import write_kubeconfig
from lib import expect, expect_equal, run, say

AT_ONCE = 40
KUBEADM = "/api/v1/namespaces/kube-system/configmaps"


def cluster_configuration(pods, services="10.96.0.0/24"):
    return (f"apiServer: {{}}\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n"
            f"  dnsDomain: cluster.local\n  podSubnet: {pods}\n  serviceSubnet: {services}\n")


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"

    def command(self, *flags):
        return [str(self.world.bin / "croft"), "--store", self.store, "pool", "defaults", *flags]

    def defaults(self, *flags, code=0, **variables):
        done = run(*self.command(*flags), check=False, env={**os.environ, **variables})
        expect_equal(done.returncode, code, f"pool defaults {flags} {variables}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def outcomes(self, *flags, **variables):
        return [(row["name"], row["cidr"], row["outcome"]) for row in
                json.loads(self.defaults(*flags, "-o", "json", **variables))]

    def pools(self):
        listed = run(self.world.bin / "croft", "--store", self.store, "pool", "list", "-o", "json")
        return sorted((pool["name"], pool["cidr"], pool["blockSize"]) for pool in json.loads(listed.stdout))


def as_kubeadm_has_them(rig):
    said = rig.defaults()
    expect("No pool is asked for" in said and 'configmaps "kubeadm-config" not found' in said, f"there is no kubeadm yet: {said}")
    # A Job that ended so would be a success, and no pod would ever start.
    said = rig.defaults("--required", code=1)
    for word in ('configmaps "kubeadm-config" not found', "--ipv4-cidr", "croft pool create"):
        expect(word in said, f"{word}: {said}")
    rig.defaults("--required", "--ipv4-cidr", "none")
    rig.kube.make(KUBEADM, "ConfigMap", "kubeadm-config",
        data={"ClusterConfiguration": cluster_configuration("10.244.0.0/16,fd00:10::/48")})
    expect("No pool is asked for" in rig.defaults("--no-kubeadm"), "kubeadm is not asked")
    said = rig.defaults("--ipv4-cidr", "10.96.0.0/22", code=1)
    expect("overlaps kubeadm's serviceSubnet 10.96.0.0/24" in said, said)
    wanted = [("default-ipv4-ippool", "10.244.0.0/16", "would be created"),
              ("default-ipv6-ippool", "fd00:10::/48", "would be created")]
    expect_equal(rig.outcomes("--dry-run"), wanted, "a dry run")
    expect_equal(rig.outcomes("--dry-run", CALICO_IPV4POOL_CIDR="10.70.0.0/16", CALICO_IPV6POOL_CIDR="none"),
                 [("default-ipv4-ippool", "10.70.0.0/16", "would be created")], "a variable goes before kubeadm")
    expect_equal(rig.outcomes("--dry-run", "--ipv4-cidr", "10.71.0.0/16", "--ipv6-cidr", "none",
                              CALICO_IPV4POOL_CIDR="10.70.0.0/16"),
                 [("default-ipv4-ippool", "10.71.0.0/16", "would be created")], "a flag goes before a variable")
    expect_equal(rig.pools(), [], "after dry runs")


def of_many_one_makes_them(rig):
    asking = [subprocess.Popen(rig.command("-o", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "CALICO_IPV4POOL_BLOCK_SIZE": "27"}) for _ in range(AT_ONCE)]
    made = []
    for one in asking:
        out, err = one.communicate(timeout=120)
        expect_equal(one.returncode, 0, f"one of {AT_ONCE}: {out}{err}")
        made += [row["name"] for row in json.loads(out) if row["outcome"] == "created"]
    # Whoever enables what another has begun says "created" too (OrderedCommit::enable).
    expect(set(made) == {"default-ipv4-ippool", "default-ipv6-ippool"} and len(made) <= 4, f"each is made, and not by each: {made}")
    expect_equal(rig.pools(), [("default-ipv4-ippool", "10.244.0.0/16", 27), ("default-ipv6-ippool", "fd00:10::/48", 122)],
                 "the pools")
    say(f"{AT_ONCE} at once: {sorted(made)}")
    expect_equal(rig.outcomes("--ipv4-cidr", "10.72.0.0/16", "--ipv6-cidr", "none"),
                 [("default-ipv4-ippool", "10.244.0.0/16", "unchanged")], "afterwards nothing is made")


def play(world, kube):
    rig = Rig(world, kube)
    as_kubeadm_has_them(rig)
    of_many_one_makes_them(rig)
