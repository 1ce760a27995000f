# SPDX-License-Identifier: MIT
"""OpenStack Swift with its S3 API on loopback, all state in one directory. It checks signatures.

Debian: swift-proxy swift-account swift-container swift-object, without configuration, memcached or rsync.
"""
import getpass
import http.client
import os
import subprocess
import time

from free_port import free_port
from runner import need
from s3_store import Store
from waiting import wait_until

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


# Makes the rings and says which part of its ring the container is in. Then a process for each server: all need the same modules,
# whose import takes longer than all that the servers do in a test.
SERVERS = """
import os, signal, sys
from swift.common.ring import Ring, RingBuilder
from swift.common.wsgi import run_wsgi
import swift.account.server, swift.container.server, swift.obj.server, swift.proxy.server
etc, bucket = sys.argv[1:3]
for word in sys.argv[3:]:
    name, port = word.split("=")
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "d1", "weight": 1.0,
                     "replication_ip": "127.0.0.1", "replication_port": int(port), "meta": ""})
    builder.rebalance()
    builder.get_ring().save("%s/%s.ring.gz" % (etc, name))
print(Ring(etc, ring_name="container").get_part("AUTH_test", bucket))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for name in ("object", "container", "account", "proxy"):
    pid = os.fork()
    if not pid:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        more = {"global_conf_callback": swift.obj.server.global_conf_callback} if name == "object" else {}
        sys.exit(run_wsgi("%s/%s.conf" % (etc, name), name + "-server", **more))
    print(name, pid, flush=True)
signal.pause()
"""


class Server:
    """A process that another one has started, with what Store uses of Popen."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        return None if os.path.exists("/proc/%d" % self.pid) else 0

    def wait(self):
        wait_until(lambda: self.poll() is not None, "a server of Swift does not end")


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
        self.ports = {name: free_port() for name in ("object", "container", "account")}
        for name, port in self.ports.items():
            with open(os.path.join(self.etc, name + ".conf"), "w") as file:
                file.write(STORAGE.format(port=port, name=name, **values))
        words = [self.etc, self.bucket] + ["%s=%d" % item for item in self.ports.items()]
        with open(os.path.join(self.top, "log"), "ab") as log:
            first = subprocess.Popen(["/usr/bin/python3", "-c", SERVERS] + words, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        self.processes["first"] = first
        self.part = first.stdout.readline().strip()
        for _ in range(4):
            name, pid = first.stdout.readline().split()
            self.processes[name] = Server(int(pid))
        first.stdout.close()
        # It ends last: until then it waits for the others.
        self.processes["first"] = self.processes.pop("first")

    def set_full(self, is_full):
        """A bucket that is full by its quota, or has none. Swift's own API needs memcached for its tokens, so the server of the
        containers is asked."""
        server = http.client.HTTPConnection("127.0.0.1", self.ports["container"], timeout=60)
        server.request("PUT", "/d1/%s/AUTH_test/%s" % (self.part, self.bucket),
                       headers={"X-Timestamp": "%.5f" % time.time(), "X-Container-Meta-Quota-Bytes": "1" if is_full else ""})
        status = server.getresponse().status
        server.close()
        if status not in (201, 202):
            raise RuntimeError("the server of the containers answers %d" % status)
