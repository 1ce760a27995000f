# SPDX-License-Identifier: MIT
"""OpenStack Swift with its S3 API on loopback, all state in one directory. It checks signatures.

Debian: swift-proxy swift-account swift-container swift-object, without configuration, memcached or rsync.
"""
import getpass
import os
import subprocess

from free_port import free_port
from runner import need
from s3_store import Store

PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {etc}
user = {user}
log_level = WARNING
log_address = {top}/none
[pipeline:main]
pipeline = catch_errors cache s3api tempauth container_quotas slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
recheck_account_existence = 0
recheck_container_existence = 0
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
connect_timeout = 0.05
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
auth_pipeline_check = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:container_quotas]
use = egg:swift#container_quotas
[filter:slo]
use = egg:swift#slo
"""

STORAGE = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {etc}
devices = {top}/dev
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
user = {user}
log_level = WARNING
log_address = {top}/none
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""


RINGS = """
import sys
from swift.common.ring import RingBuilder
for word in sys.argv[2:]:
    name, port = word.split("=")
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "d1", "weight": 1.0,
                     "replication_ip": "127.0.0.1", "replication_port": int(port), "meta": ""})
    builder.rebalance()
    builder.get_ring().save("%s/%s.ring.gz" % (sys.argv[1], name))
"""

# Swift's own API needs memcached for its tokens, so the server of the containers is asked.
QUOTA = """
import sys
from swift.common.direct_client import direct_put_container
from swift.common.ring import Ring
part, nodes = Ring(sys.argv[1], ring_name="container").get_nodes("AUTH_test", sys.argv[2])
direct_put_container(nodes[0], part, "AUTH_test", sys.argv[2], headers={"X-Container-Meta-Quota-Bytes": sys.argv[3]})
"""


class Swift(Store):
    name, storage, has_quota = "Swift", "object", True

    def __init__(self, top, bucket="symbols"):
        need("swift-proxy-server", "swift-object-server", "curl")
        super().__init__(top, bucket)
        self.etc = os.path.join(top, "etc")

    def start(self):
        os.makedirs(self.etc)
        os.makedirs(os.path.join(self.top, "dev", "d1"))
        values = {"etc": self.etc, "top": self.top, "user": getpass.getuser()}
        with open(os.path.join(self.etc, "proxy.conf"), "w") as file:
            file.write(PROXY.format(port=self.port, **values))
        ports = {name: free_port() for name in ("object", "container", "account")}
        for name, port in ports.items():
            with open(os.path.join(self.etc, name + ".conf"), "w") as file:
                file.write(STORAGE.format(port=port, name=name, **values))
        # One process instead of nine of swift-ring-builder.
        subprocess.run(["/usr/bin/python3", "-c", RINGS, self.etc] + ["%s=%d" % item for item in ports.items()], check=True)
        for name in ("object", "container", "account", "proxy"):
            self.run(name, "swift-%s-server" % name, os.path.join(self.etc, name + ".conf"))

    def set_full(self, is_full):
        """A bucket that is full by its quota, or has none."""
        subprocess.run(["/usr/bin/python3", "-c", QUOTA, self.etc, self.bucket, "1" if is_full else ""], check=True)
