#!/usr/bin/env bash
# PNGs for the README, from the SVGs that `REQTOP_UPDATE=1 cargo test --test screenshots` draws.
# Needs rsvg-convert (Debian: librsvg2-bin) and DejaVu Sans Mono (fonts-dejavu-core).
set -euo pipefail
cd "$(dirname "$0")"
for name in live-150x40 request-150x40; do rsvg-convert -w 1500 "$name.svg" -o "$name.png"; done
