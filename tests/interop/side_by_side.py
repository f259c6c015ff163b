"""Sends captured spans with fresh ids to one OTLP/HTTP endpoint and measures the process behind it.

    side_by_side.py NAME PID PORT SPANS CAPTURE

CAPTURE is a gzip file of length-delimited ExportTraceServiceRequests. Prints one row: spans a second answered with 200,
resident memory grown for each 100,000 of them, CPU seconds a minute while nothing comes.
"""

import gzip
import http.client
import os
import re
import sys
import threading
import time

IDLE_SECONDS = 20
# What is done with what came, such as checks after a time of grace, is no idling.
SETTLED_SECONDS = 30
UUID = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def messages(path):
    """Each message with the trace ids in it and how many spans it has."""
    data = gzip.open(path).read()
    at, found = 0, []
    while at < len(data):
        length, at = varint(data, at)
        message, at = data[at : at + length], at + length
        spans = [
            dict(reversed(list(fields(span))))
            for number, resource in fields(message)
            if number == 1
            for number, scope in fields(resource)
            if number == 2
            for number, span in fields(scope)
            if number == 2
        ]
        found.append((message, {span[1] for span in spans}, len(spans)))
    return found


def fresh(message, traces, copy):
    """The same message with other trace ids and request ids; lengths stay."""
    mark = copy.to_bytes(4, "big")
    other = {trace: bytes(a ^ b for a, b in zip(trace, mark + bytes(12))) for trace in traces}
    anyone = re.compile(b"|".join(re.escape(trace) for trace in traces))
    message = anyone.sub(lambda match: other[match[0]], message)
    return UUID.sub(b"%08x" % copy, message)


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu(pid):
    parts = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def post(connection, body):
    connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def main():
    name, pid, port, wanted, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    pattern = messages(path)
    deadline = time.monotonic() + 30
    while True:
        try:
            if post(http.client.HTTPConnection("127.0.0.1", port, timeout=30), b"") < 500:
                break
        except OSError:
            pass
        if time.monotonic() > deadline:
            print(f"{name:<10} {'no answer':>14}")
            return
        time.sleep(0.05)
    copies = max(1, wanted // sum(count for _, _, count in pattern))
    bodies = [
        (fresh(message, traces, copy), count) for copy in range(1, copies + 1) for message, traces, count in pattern
    ]
    before, lock, accepted = resident(pid), threading.Lock(), [0]

    def send(part):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for body, count in part:
            # As an SDK does: again until it is taken.
            while (status := post(connection, body)) in (429, 503):
                time.sleep(0.02)
            if status == 200:
                with lock:
                    accepted[0] += count

    begun = time.monotonic()
    threads = [threading.Thread(target=send, args=(bodies[start::2],)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    time.sleep(SETTLED_SECONDS)
    grown = resident(pid) - before
    idle = cpu(pid)
    time.sleep(IDLE_SECONDS)
    idle = (cpu(pid) - idle) * 60 / IDLE_SECONDS
    per = grown / max(1, accepted[0]) * 100_000
    print(f"{name:<10} {accepted[0] / took:>14,.0f} {per:>22.1f} {idle:>16.2f}", flush=True)


main()
