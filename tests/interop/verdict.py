#!/usr/bin/env python3
"""Looks at what `reqtop check --json` said of an interop run, and at the load generator's own files.

  verdict.py RUN EXIT_STATUS FOLDER

The folder holds check.json and either AIPerf's profile_export.jsonl or load.py's load.json. Prints one line of numbers;
exits 1 with the reasons when the run does not agree. Standard library only.
"""
import collections
import json
import pathlib
import sys

# What each run must at least have had, so that an empty one does not pass.
LEAST = {"plain": {"success": 65}, "cancel": {"success": 20, "cancelled": 5}, "queue": {"success": 10, "rejected": 20}}


def main():
    name, status, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    wrong = []
    text = (folder / "check.json").read_text()
    log = (folder / "check.log").read_text().strip().splitlines()[1:]
    if not text:
        sys.exit(f"{name}: reqtop check ended with {status} and said nothing: {log}")
    check = json.loads(text)
    counts = {word: sum(row[word] for row in check["checks"]) for word in ("holds", "violated", "unknown")}
    found = [(row["id"], v) for row in check["checks"] for v in row["violations"]]
    wrong += [f"{id} violated: {v['message']}" for id, v in found if v["level"] == "error"]
    # Oddities of today's producer are worth telling and fail nothing.
    warnings = collections.Counter(id for id, v in found if v["level"] == "warning")
    first = {id: v["message"] for id, v in reversed(found) if v["level"] == "warning"}
    if status != 0 or not check["passed"]:
        wrong.append(f"reqtop check ended with {status}, passed is {check['passed']}")
    wrong += [line for line in log if "load.count" in line]
    if name in LEAST:
        sent = sum(1 for line in (folder / "profile_export.jsonl").read_text().splitlines() if line.strip())
        load = check["load"]
        wrong += load["disagreements"] + [f"unequal: {row}" for row in load["unequal"]]
        client, roots = collections.Counter(), collections.Counter()
        for phase in load["phases"]:
            client.update(phase["client"])
            roots.update(phase["root"])
        if load["roots"] != sent or load["others"]:
            wrong.append(f"{sent} records, {load['roots']} roots compared, {load['others']} of others")
        for outcome, least in LEAST[name].items():
            if client[outcome] < least:
                wrong.append(f"only {client[outcome]} {outcome}, expected at least {least}")
        said = f"{sent} records; client {dict(client)}, roots {dict(roots)}; tokens of {load['tokens_compared']} compared"
    else:
        load = json.loads((folder / "load.json").read_text())
        if load["sent"] < 60:
            wrong.append(f"only {load['sent']} sent")
        said = f"{load['sent']} sent: {json.dumps(load['results'])}"
    print(f"{name}: {check['requests']} requests, {said}; answers {counts}")
    for id, count in warnings.items():
        print(f"  {name} warns {count} times of {id}, first: {first[id]}")
    for reason in wrong:
        print(f"  {name} disagrees: {reason}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
