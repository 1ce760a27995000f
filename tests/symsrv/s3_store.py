# SPDX-License-Identifier: MIT
"""A real object store with an S3 API: its processes, and signed requests to it."""
import contextlib
import hashlib
import http.client
import os
import signal
import subprocess

from free_port import free_port
from waiting import is_in_time

ACCESS_KEY, SECRET_KEY = "test:tester", "testing"


class Store:
    """A context manager; `url` is the endpoint, `bucket` exists. `storage` names the process that has the objects."""

    has_quota = False

    def __init__(self, top, bucket):
        self.top, self.bucket = top, bucket
        self.processes = {}
        self.port = free_port()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def run(self, name, *command):
        with open(os.path.join(self.top, name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def request(self, method, key="", body=None, output="/dev/null"):
        """Status of one signed request."""
        command = ["curl", "-s", "-o", output, "-w", "%{http_code}", "--aws-sigv4", "aws:amz:us-east-1:s3", "-X", method,
                   "-H", "x-amz-content-sha256: " + hashlib.sha256(body or b"").hexdigest(),
                   "http://%s:%s@127.0.0.1:%d/%s%s" % (ACCESS_KEY.replace(":", "%3A"), SECRET_KEY, self.port, self.bucket, key)]
        if body is not None:
            command += ["--data-binary", "@-", "-H", "Content-Type: application/octet-stream"]
        return subprocess.run(command, input=body, capture_output=True).stdout.decode()

    def object(self, key):
        """The bytes of a stored object, or None."""
        path = os.path.join(self.top, "object")
        if self.request("GET", key, output=path) != "200":
            return None
        with open(path, "rb") as file:
            return file.read()

    def answers(self):
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("GET", "/")
                return connection.getresponse().status > 0
            finally:
                connection.close()
        return False

    def has_ended(self):
        return any(process.poll() is not None for process in self.processes.values())

    def __enter__(self):
        def has_begun():
            return self.has_ended() or (self.answers() and self.request("PUT") in ("200", "409"))
        try:
            self.start()
            if not is_in_time(has_begun, 120, 0.2) or self.has_ended():
                raise RuntimeError("%s did not start; its logs are in %s" % (self.name, self.top))
        except BaseException:
            self.__exit__()
            raise
        return self

    def stop(self, name):
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def signal(self, name, number):
        os.killpg(self.processes[name].pid, number)

    def __exit__(self, *_):
        for name, process in self.processes.items():
            if process.poll() is None:
                self.signal(name, signal.SIGCONT)
                self.stop(name)
