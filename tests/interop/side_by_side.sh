#!/usr/bin/env bash
# reqtop beside its neighbours, in one run on this machine: otelite (crates.io) and otel-tui (Go), each as a terminal
# program that receives OTLP. Prints a table: spans a second accepted, resident memory for each 100,000 spans, CPU of a
# minute without traffic.
#
#   tests/interop/side_by_side.sh [SPANS]      SPANS to send to each, 300,000 unless said
#
# All get the same: real captured spans with fresh ids (side_by_side.py), as OTLP/HTTP protobuf from two connections, one
# program after the other; each has a terminal of 150×40 (tmux). What is "accepted" is what was answered with 200.
#
# Installs otelite and otel-tui once below REQTOP_SIDE_DIR (default: reqtop-side in the temporary folder), never into the
# repository; one whose tools are missing or that cannot be installed is left out with a word. REQTOP names the binary to
# test; without it the release one is built. Loopback only. Needs Python 3 and tmux. Exit: 0 done, 77 skipped.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
DIR=${REQTOP_SIDE_DIR:-${TMPDIR:-/tmp}/reqtop-side}
SPANS=${1:-300000}
SOCKET=reqtop-side-$$

skip() { echo "SKIPPED: $*" >&2; exit 77; }
say() { echo "side by side: $*" >&2; }

command -v python3 >/dev/null || skip "python3 is not installed"
command -v tmux >/dev/null || skip "tmux is not installed"
mkdir -p "$DIR/bin"

REQTOP=${REQTOP:-}
if [ -z "$REQTOP" ]; then
  cargo build --release --manifest-path "$ROOT/Cargo.toml"
  REQTOP="$ROOT/target/release/reqtop"
fi
if [ ! -x "$DIR/bin/otelite" ]; then
  say "installing otelite"
  cargo install otelite --locked --root "$DIR" >"$DIR/otelite.log" 2>&1 || say "otelite cannot be installed: $(tail -1 "$DIR/otelite.log")"
fi
if [ ! -x "$DIR/bin/otel-tui" ]; then
  if command -v go >/dev/null; then
    say "installing otel-tui"
    GOBIN="$DIR/bin" go install github.com/ymtdzzz/otel-tui@latest >"$DIR/otel-tui.log" 2>&1 || say "otel-tui cannot be installed: $(tail -1 "$DIR/otel-tui.log")"
  else
    say "otel-tui is left out: Go is not installed"
  fi
fi

trap 'tmux -L "$SOCKET" kill-server 2>/dev/null || true' EXIT

printf '%-10s %14s %22s %16s\n' program "spans/s" "MiB per 100 k spans" "idle CPU s/min"
# One program: its name, then its command with the port it listens on for OTLP/HTTP.
run() {
  local name=$1 port=$2; shift 2
  [ -x "$1" ] || { printf '%-10s %14s\n' "$name" "not installed"; return; }
  tmux -L "$SOCKET" new-session -d -x 150 -y 40 -e "HOME=$DIR/home-$name" "exec $(printf '%q ' "$@") 2>'$DIR/$name.err'"
  local pid
  pid=$(tmux -L "$SOCKET" list-panes -F '#{pane_pid}')
  python3 "$HERE/side_by_side.py" "$name" "$pid" "$port" "$SPANS" "$ROOT/tests/fixtures/dev-sim.traces.pb.gz" || true
  tmux -L "$SOCKET" kill-server 2>/dev/null || true
  # The next one may need the same port.
  sleep 1
}
mkdir -p "$DIR/home-reqtop" "$DIR/home-otelite" "$DIR/home-otel-tui"
run reqtop 43180 "$REQTOP" --grpc 127.0.0.1:43170 --http 127.0.0.1:43180 --max-memory 4GiB
run otelite 4318 "$DIR/bin/otelite" ${OTELITE_ARGS:-}
run otel-tui 43182 "$DIR/bin/otel-tui" --host 127.0.0.1 --grpc 43172 --http 43182
