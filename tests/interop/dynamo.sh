#!/usr/bin/env bash
# The real AIPerf against a real Dynamo, watched by `reqtop check --listen`: both must agree.
#
#   tests/interop/dynamo.sh [RUN…]      RUN is plain, cancel, queue or mixed; all of them when none is named
#
# Each run starts `reqtop check` on a free port, a small Dynamo on this machine that exports to it (dev-cluster.sh: a
# frontend, its router and pretend engines, CPU only), and a load generator; then it stops all three and looks at the
# verdict: no check violated, every outcome and token count of the client equal to the spans'.
#
#   plain   AIPerf, warmup and profiling, everything succeeds; OTLP over gRPC
#   cancel  AIPerf cancels half of its requests after 0.3 s; disaggregated, OTLP over HTTP
#   queue   AIPerf, 64 at once against short router queues: rejections; OTLP over gRPC
#   mixed   load.py: streams, aborts, invalid bodies, completions, sessions, compared through its JSON (--load); core
#           mode, OTLP over HTTP
#
# Needs Python 3.11 or newer with venv, and a package index for `pip`; installs ai-dynamo and aiperf once (about a
# minute) below REQTOP_INTEROP_DIR (default: reqtop-interop in the temporary folder), never into the repository.
# REQTOP names the binary to test; without it the debug one is built. Everything listens on loopback only; each run is
# bounded in time and ends only what it started. Exit: 0 all agree, 1 a run does not, 77 skipped (the reason is printed).
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
DIR=${REQTOP_INTEROP_DIR:-${TMPDIR:-/tmp}/reqtop-interop}
AIPERF_VERSION=0.13.0
CLUSTER_SECONDS=240

skip() { echo "SKIPPED: $*" >&2; exit 77; }
say() { echo "interop: $*" >&2; }

RUNS=("$@")
[ ${#RUNS[@]} -gt 0 ] || RUNS=(plain cancel queue mixed)
for run in "${RUNS[@]}"; do
  case "$run" in plain|cancel|queue|mixed) ;; *) sed -n '2,4p' "$0" | cut -c3- >&2; exit 2;; esac
done

# ---- what is needed ------------------------------------------------------------------------------------
PYTHON=""
for candidate in python3.12 python3.11 python3.13 python3; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    PYTHON=$candidate; break
  fi
done
[ -n "$PYTHON" ] || skip "Python 3.11 or newer with venv is needed"
mkdir -p "$DIR"; DIR=$(cd "$DIR" && pwd)

if [ -z "${REQTOP:-}" ]; then
  command -v cargo >/dev/null || skip "cargo is needed to build reqtop (or name a binary with REQTOP)"
  ( cd "$HERE/../.." && cargo build --locked --quiet )
  REQTOP="${CARGO_TARGET_DIR:-$HERE/../../target}/debug/reqtop"
fi
[ -x "$REQTOP" ] || { echo "interop: REQTOP is no program: $REQTOP" >&2; exit 2; }

timeout 600 "$HERE/dev-cluster.sh" --install-only --dir "$DIR/dynamo" >"$DIR/install-dynamo.log" 2>&1 \
  || skip "ai-dynamo cannot be installed here (log: $DIR/install-dynamo.log)"
if [ ! -e "$DIR/aiperf/.installed-$AIPERF_VERSION" ]; then
  say "installing aiperf $AIPERF_VERSION (once)"
  { "$PYTHON" -m venv "$DIR/aiperf" \
    && timeout 600 "$DIR/aiperf/bin/python" -m pip install -q --disable-pip-version-check "aiperf==$AIPERF_VERSION"; } \
    >"$DIR/install-aiperf.log" 2>&1 || skip "aiperf cannot be installed here (log: $DIR/install-aiperf.log)"
  touch "$DIR/aiperf/.installed-$AIPERF_VERSION"
fi

# ---- one run -------------------------------------------------------------------------------------------
STARTED=()
stop() { # pid: asks it to end, and waits until it has
  kill -TERM "$1" 2>/dev/null || return 0
  local end=$((SECONDS + 40))
  while kill -0 "$1" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.2; done
  if kill -0 "$1" 2>/dev/null; then kill -KILL "$1" 2>/dev/null || true; fi
}
trap 'for pid in "${STARTED[@]}"; do stop "$pid"; done' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

await() { # seconds file text pid: until the file has the text, while the process lives
  local end=$((SECONDS + $1))
  until grep -q "$3" "$2" 2>/dev/null; do
    if ! kill -0 "$4" 2>/dev/null || [ $SECONDS -ge $end ]; then
      say "waited for \"$3\" in $2:"; tail -n 5 "$2" >&2; return 1
    fi
    sleep 0.2
  done
}

aiperf() { # url artifacts option…
  local url=$1 artifacts=$2; shift 2
  ( cd "$DIR" && timeout 180 aiperf/bin/aiperf profile --model tiny-model --tokenizer "$DIR/dynamo/tiny-model" --url "$url" \
    --endpoint-type chat --streaming --isl 120 --osl 24 --export-level records --ui none --no-gpu-telemetry \
    --no-server-metrics --artifact-dir "$artifacts" "$@" ) >"$artifacts/aiperf.log" 2>&1
}

run() {
  local name=$1 out="$DIR/runs/$1" protocol=grpc cluster=() compare=() reqtop dynamo grpc http url ok=0
  rm -rf "$out"; mkdir -p "$out"
  case "$name" in
    cancel) protocol=http; cluster=(--disagg --workers 3 --speed 0.4);;
    queue) cluster=(--queue);;
    mixed) protocol=http; cluster=(--mode core);;
  esac
  case "$name" in
    mixed) compare=(--load "$out/load.json");;
    *) compare=(--aiperf "$out/profile_export.jsonl");;
  esac
  "$REQTOP" check --listen --grpc 127.0.0.1:0 --http 127.0.0.1:0 --json "${compare[@]}" >"$out/check.json" 2>"$out/check.log" &
  reqtop=$!; STARTED+=("$reqtop")
  await 10 "$out/check.log" "listening: grpc" "$reqtop" || return 1
  grpc=$(sed -n 's/.*listening: grpc \([^;,]*\).*/\1/p' "$out/check.log"); http=$(sed -n 's/.*; http \([^;,]*\).*/\1/p' "$out/check.log")
  [ "$protocol" = grpc ] && url="http://$grpc" || url="http://$http"
  local port
  port=$("$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$HERE/dev-cluster.sh" --endpoint "$url" --protocol "$protocol" --backend sim --dir "$DIR/dynamo" --http-port "$port" \
    --flush-ms 500 --seconds "$CLUSTER_SECONDS" "${cluster[@]}" >"$out/cluster.log" 2>&1 &
  dynamo=$!; STARTED+=("$dynamo")
  await 130 "$out/cluster.log" "^READY" "$dynamo" || return 1

  url="http://127.0.0.1:$port"
  say "$name: load"
  case "$name" in
    plain) aiperf "$url" "$out" --concurrency 8 --request-count 60 --warmup-request-count 5 || ok=1;;
    cancel) aiperf "$url" "$out" --concurrency 8 --request-count 60 --warmup-request-count 5 \
              --request-cancellation-rate 50 --request-cancellation-delay 0.3 || ok=1;;
    queue) aiperf "$url" "$out" --concurrency 64 --request-count 160 || ok=1;;
    mixed) timeout 180 "$PYTHON" "$HERE/load.py" --url "$url" --requests 60 --concurrency 6 >"$out/load.json" 2>"$out/load.log" || ok=1;;
  esac
  [ $ok = 0 ] || { say "$name: the load generator failed (logs: $out)"; return 1; }
  # Its exporters send twice a second; stopped, it sends what it still has. Then the verdict.
  sleep 2
  stop "$dynamo"
  kill -TERM "$reqtop"
  local status=0; wait "$reqtop" || status=$?
  "$PYTHON" "$HERE/verdict.py" "$name" "$status" "$out"
}

FAILED=0
for name in "${RUNS[@]}"; do
  run "$name" || FAILED=1
done
[ $FAILED = 0 ] && say "all agree" || say "not all agree (everything is kept in $DIR/runs)"
exit $FAILED
