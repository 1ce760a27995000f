# SPDX-License-Identifier: MIT
"""One deploy to a fleet: hosts, servers, a bucket and an upstream, simulated event by event.

fleet_figures.py measures what an object weighs and what a request costs, and runs this for each way to serve. Each host restarts at its
own moment. It asks for its objects one after the other, and for the missing ones again when its own memory of them ends.

Assumed, because it is not ours: the upstream and the bucket (LINKS), and a network card of 1 Gbit/s for each server.
"""
import heapq
import random

# Seconds to the first byte, and bytes a second.
LINKS = {"upstream": (0.1, 10e6), "bucket": (0.05, 130e6), "peer": (0.001, 125e6), "host": (0.001, 125e6)}
ROLL_S = 600
# The first host restarts when a prefetch may have ended.
LEAD_S = 60
ASKS_AGAIN_S = 600
UPLOAD_S = 1
HERE, MISSING = "here", "missing"


class Server:
    def __init__(self, number):
        self.number, self.objects, self.waiting = number, {}, {}
        self.cpu_free_s = self.link_free_s = self.cpu_s = 0.0


class Simulation:
    """`features`: servers, names, tier, filled (the bucket has all objects), peers, resolve, maps, prefetch.

    `figures`: see fleet_figures.py.
    """

    def __init__(self, figures, features, hosts, servers, seed=48):
        self.figures, self.features = figures, set(features)
        self.servers = [Server(number) for number in range(servers)]
        self.bucket, self.events, self.serial, self.now_s = set(), [], 0, 0.0
        if "filled" in self.features:
            self.bucket.update(key for key in self.keys() if key[0] == "debug")
        self.upstream_requests = self.upstream_bytes = self.inner_bytes = self.host_requests = self.host_bytes = 0
        self.host_cpu_s, self.waits_s, self.by_second = 0.0, [], {}
        chosen = random.Random(seed)
        self.hosts = hosts
        for number in range(hosts):
            self.at(LEAD_S + chosen.random() * ROLL_S, self.begin_host, self.servers[number % servers])

    def at(self, time_s, call, *arguments):
        self.serial += 1
        heapq.heappush(self.events, (time_s, self.serial, call, arguments))

    def run(self):
        if "prefetch" in self.features:
            for server in self.servers:
                for key in self.keys():
                    self.at(0, self.look_up, server, key, lambda found: None)
        while self.events:
            self.now_s, _, call, arguments = heapq.heappop(self.events)
            call(*arguments)
        return self

    # ---- hosts ----

    def keys(self):
        """The objects of a host: what is asked for each of its modules, and what does not exist."""
        kind = "names" if self.features & {"names", "resolve"} else "debug"
        keys = [(kind, number) for number in range(len(self.figures["debug"]))]
        if "maps" in self.features:
            keys += [("map", number) for number in range(len(self.figures["map"]))]
        return keys + [("missing", number) for number in range(self.figures["missing"])]

    def begin_host(self, server):
        if not self.features & {"maps", "resolve"}:
            self.host_cpu_s += self.figures["own_maps_cpu_s"]
        if "resolve" in self.features:
            self.host_requests += 1
            self.ask_resolve(server, list(self.keys()), self.now_s)
            return
        self.ask_next(server, list(reversed(self.keys())), self.now_s, True)

    def ask_resolve(self, server, keys, begun_s):
        """One request; the server looks for all modules at once."""
        left = [len(keys)]

        def on_found(_):
            left[0] -= 1
            if not left[0]:
                self.spend(server, self.figures["resolve_cpu_s"])
                self.at(self.send_to_host(server, self.figures["resolve_bytes"]), self.end_host, begun_s)

        for key in keys:
            self.look_up(server, key, on_found)

    def ask_next(self, server, keys, begun_s, is_first):
        if not keys:
            self.end_host(begun_s)
            if is_first:
                again = [key for key in self.keys() if key[0] == "missing"]
                self.at(self.now_s + ASKS_AGAIN_S, self.ask_next, server, again, self.now_s + ASKS_AGAIN_S, False)
            return
        key = keys.pop()
        if "servers" not in self.features:
            self.at(self.ask_upstream(key), self.ask_next, server, keys, begun_s, is_first)
            self.host_bytes += self.bytes_of(key)
            return
        self.host_requests += 1

        def on_found(_):
            self.spend(server, self.figures["miss_cpu_s"] if key[0] == "missing" else
                       self.figures["hit_cpu_s"] + self.bytes_of(key) * self.figures["byte_cpu_s"])
            self.at(self.send_to_host(server, self.bytes_of(key)), self.ask_next, server, keys, begun_s, is_first)

        self.look_up(server, key, on_found)

    def end_host(self, begun_s):
        self.waits_s.append(self.now_s - begun_s)

    def send_to_host(self, server, size_bytes):
        self.host_bytes += size_bytes
        server.link_free_s = max(server.link_free_s, self.now_s) + size_bytes / LINKS["host"][1]
        return max(server.link_free_s, server.cpu_free_s) + LINKS["host"][0]

    # ---- servers ----

    def spend(self, server, cpu_s):
        server.cpu_s += cpu_s
        server.cpu_free_s = max(server.cpu_free_s, self.now_s) + cpu_s

    def bytes_of(self, key):
        return 0 if key[0] == "missing" else self.figures[key[0]][key[1]]

    def look_up(self, server, key, call, from_peer=False):
        """Calls call(is_found) now, or when the one fetch of this server for the object ends."""
        state, until_s = server.objects.get(key, (None, 0))
        if state == HERE or (state == MISSING and self.now_s < until_s):
            call(state == HERE)
        elif key in server.waiting:
            server.waiting[key].append(call)
        else:
            server.waiting[key] = [call]
            self.fetch(server, key, from_peer)

    def settle(self, server, key, is_found, is_uploaded=False):
        server.objects[key] = (HERE, 0) if is_found else (MISSING, self.now_s + self.figures["negative_s"])
        if is_found and is_uploaded and "tier" in self.features and key[0] in ("debug", "image"):
            self.inner_bytes += self.bytes_of(key)
            self.at(self.now_s + UPLOAD_S, self.bucket.add, key)
        for call in server.waiting.pop(key):
            call(is_found)

    def owner_of(self, key):
        """Names and maps have the owner of the object that they are made from."""
        kind = {"names": "debug", "map": "image"}.get(key[0], key[0])
        return self.servers[random.Random(repr((kind, key[1]))).randrange(len(self.servers))]

    def fetch(self, server, key, from_peer):
        """The bucket, then the owner of the key, then the upstream; names and maps are made from their object."""
        delay_s, rate = LINKS["bucket"]
        if "tier" in self.features and key[0] in ("debug", "image", "missing"):
            if key in self.bucket:
                self.inner_bytes += self.bytes_of(key)
                self.at(self.now_s + delay_s + self.bytes_of(key) / rate, self.settle, server, key, True)
            else:
                self.at(self.now_s + delay_s, self.fetch_beyond, server, key, from_peer)
        else:
            self.fetch_beyond(server, key, from_peer)

    def fetch_beyond(self, server, key, from_peer):
        owner = self.owner_of(key)
        if "peers" in self.features and owner is not server and not from_peer:
            def on_found(is_found):
                self.inner_bytes += self.bytes_of(key)
                self.at(self.now_s + LINKS["peer"][0] + self.bytes_of(key) / LINKS["peer"][1], self.settle, server, key, is_found)
            self.look_up(owner, key, on_found, from_peer=True)
        elif key[0] in ("names", "map"):
            source = ("debug" if key[0] == "names" else "image", key[1])

            def on_source(_):
                self.spend(server, self.figures["%s_cpu_s" % key[0]][key[1]])
                self.at(server.cpu_free_s, self.settle, server, key, True)
            self.look_up(server, source, on_source, from_peer)
        else:
            self.at(self.ask_upstream(key), self.settle, server, key, key[0] != "missing", True)

    def ask_upstream(self, key):
        """When the answer has come."""
        self.upstream_requests += 1
        self.upstream_bytes += self.bytes_of(key)
        self.by_second[int(self.now_s)] = self.by_second.get(int(self.now_s), 0) + 1
        return self.now_s + LINKS["upstream"][0] + self.bytes_of(key) / LINKS["upstream"][1]
