#!/usr/bin/env bash
# A static binary for any Linux of this kind of processor: target/ARCH-unknown-linux-musl/release/reqtop.
# Needs the Rust target (rustup target add ARCH-unknown-linux-musl) and musl-gcc (Debian: musl-tools) for zstd and ring.
set -euo pipefail
cd "$(dirname "$0")/../.."
target="$(uname -m)-unknown-linux-musl"
command -v musl-gcc >/dev/null || { echo "no musl-gcc: apt install musl-tools" >&2; exit 2; }
rustup target list --installed 2>/dev/null | grep -qx "$target" || rustup target add "$target"
cargo build --locked --release --bin reqtop --target "$target"
binary="target/$target/release/reqtop"
if readelf -d "$binary" 2>/dev/null | grep -q NEEDED; then
  echo "$binary needs shared libraries:" >&2
  readelf -d "$binary" | grep NEEDED >&2
  exit 1
fi
"$binary" --version
ls -l "$binary"
