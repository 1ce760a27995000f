# SPDX-License-Identifier: MIT
"""OpenStack Swift with its S3 API on loopback, all state in one directory. It checks signatures.

Debian: swift-proxy swift-account swift-container swift-object, without configuration, memcached or rsync.
"""
import contextlib
import getpass
import hashlib
import http.client
import os
import signal
import subprocess

from free_port import free_port
from runner import need
from waiting import is_in_time

ACCESS_KEY, SECRET_KEY = "test:tester", "testing"

PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {etc}
user = {user}
log_level = WARNING
log_address = {top}/none
[pipeline:main]
pipeline = catch_errors cache s3api tempauth slo proxy-server
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


class Swift:
    """A context manager; `url` is the endpoint, `bucket` exists."""

    def __init__(self, top, bucket="symbols"):
        need("swift-proxy-server", "swift-object-server", "curl")
        self.top, self.bucket = top, bucket
        self.etc = os.path.join(top, "etc")
        self.processes = {}
        self.port = free_port()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def run(self, name):
        log = open(os.path.join(self.top, name + ".log"), "ab")
        self.processes[name] = subprocess.Popen(["swift-%s-server" % name, os.path.join(self.etc, name + ".conf")],
                                                stdout=log, stderr=log, start_new_session=True)

    def curl(self, method, key="", secret=SECRET_KEY, body=None):
        """Status of one signed request."""
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--aws-sigv4", "aws:amz:us-east-1:s3", "-X", method,
                   "-H", "x-amz-content-sha256: " + hashlib.sha256(body or b"").hexdigest(),
                   "http://%s:%s@127.0.0.1:%d/%s%s" % (ACCESS_KEY.replace(":", "%3A"), secret, self.port, self.bucket, key)]
        if body is not None:
            command += ["--data-binary", "@-", "-H", "Content-Type: application/octet-stream"]
        return subprocess.run(command, input=body, capture_output=True).stdout.decode()

    def answers(self):
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("GET", "/")
                return connection.getresponse().status > 0
            finally:
                connection.close()
        return False

    def __enter__(self):
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
            self.run(name)
        def has_ended():
            return any(process.poll() is not None for process in self.processes.values())

        def has_begun():
            return has_ended() or (self.answers() and self.curl("PUT") in ("200", "409"))
        if not is_in_time(has_begun, 120, 0.2) or has_ended():
            self.__exit__()
            raise RuntimeError("Swift did not start; its logs are in " + self.top)
        return self

    def stop(self, name):
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def signal(self, name, number):
        os.killpg(self.processes[name].pid, number)

    def objects(self):
        """Every stored object's file below the devices."""
        found = []
        for directory, _, names in os.walk(os.path.join(self.top, "dev")):
            found += [os.path.join(directory, name) for name in names if name.endswith(".data")]
        return found

    def __exit__(self, *_):
        for name, process in self.processes.items():
            if process.poll() is None:
                self.signal(name, signal.SIGCONT)
                self.stop(name)
