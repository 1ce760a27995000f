# SPDX-License-Identifier: MIT
"""Ceph's object gateway on loopback: a monitor, a storage daemon that keeps all in memory, and radosgw.

Debian: radosgw ceph-mon ceph-osd ceph-common. All files are in one directory; nothing needs systemd or root.
"""
import os
import subprocess

from free_port import free_port
from runner import Skip, find_program
from s3_store import ACCESS_KEY, SECRET_KEY, Store

CLUSTER, DEVICE = "6b6f6f6b-0000-4000-8000-000000000001", "6b6f6f6b-0000-4000-8000-000000000002"
PROGRAMS = ("radosgw", "radosgw-admin", "ceph-mon", "ceph-osd", "ceph", "monmaptool", "curl")

CONFIGURATION = """[global]
fsid = {cluster}
mon host = [{monitor}]
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
auth supported = none
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr2 = false
run dir = {top}/run
admin socket = {top}/run/$name.$pid.asok
crash dir = {top}/run
log file = {top}/$name.log
mon cluster log file = {top}/cluster.log
pid file = {top}/run/$name.pid
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd class load list = *
osd class default list = *
mon allow pool size one = true
mon max pg per osd = 1000
[mon.a]
mon data = {top}/mon
[osd.0]
osd data = {top}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw data = {top}/rgw
rgw thread pool size = 64
rgw dns name = 127.0.0.1
rgw enable usage log = false
rgw enable ops log = false
"""


class Ceph(Store):
    name, storage = "Ceph", "osd"

    def __init__(self, top, bucket="symbols"):
        missing = [program for program in PROGRAMS if not find_program(program)]
        if missing:
            raise Skip(missing[0] + " is not installed (apt-get install radosgw ceph-mon ceph-osd ceph-common curl)")
        super().__init__(top, bucket)
        self.file = os.path.join(top, "ceph.conf")

    def command(self, program, *words):
        """Waits for a program that sets something up."""
        with open(os.path.join(self.top, "setup.log"), "ab") as log:
            subprocess.run([program, "-c", self.file, *words], stdout=log, stderr=log, check=True, timeout=120)

    def daemon(self, name, program, *words):
        self.run(name, program, "-c", self.file, *words, "-f")

    def start(self):
        for name in ("mon", "osd", "rgw", "run"):
            os.mkdir(os.path.join(self.top, name))
        monitor, map_file = "v1:127.0.0.1:%d" % free_port(), os.path.join(self.top, "monmap")
        with open(self.file, "w") as file:
            file.write(CONFIGURATION.format(cluster=CLUSTER, monitor=monitor, top=self.top, port=self.port))
        # With --add in place of --addv the monitor would look for itself at the usual ports.
        self.command("monmaptool", "--create", "--fsid", CLUSTER, "--addv", "a", "[%s]" % monitor, map_file)
        self.command("ceph-mon", "-i", "a", "--mkfs", "--monmap", map_file)
        self.daemon("mon", "ceph-mon", "-i", "a")
        self.command("ceph", "--connect-timeout", "60", "osd", "new", DEVICE, "0")
        self.command("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", DEVICE)
        self.daemon("osd", "ceph-osd", "-i", "0")
        self.command("radosgw-admin", "-n", "client.rgw", "user", "create", "--uid=test", "--display-name=test",
                     "--access-key=" + ACCESS_KEY, "--secret-key=" + SECRET_KEY)
        self.daemon("gateway", "radosgw", "-n", "client.rgw")
