#!/usr/bin/env bash
# A Debian package of a built binary: target/debian/reqtop_VERSION_ARCH.deb, with manual pages and completions made by the
# binary itself. Takes the static binary (tests/package/static.sh) where there is one, else target/release/reqtop.
# Needs dpkg-deb and gzip. Usage: tests/package/deb.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/../.."
binary="${1:-}"
for built in "target/$(uname -m)-unknown-linux-musl/release/reqtop" target/release/reqtop; do
  [ -z "$binary" ] && [ -x "$built" ] && binary="$built"
done
[ -x "$binary" ] || { echo "no binary: tests/package/static.sh or cargo build --release first" >&2; exit 2; }
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
arch="$(dpkg --print-architecture)"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT

install -Dm755 "$binary" "$root/usr/bin/reqtop"
"$binary" man --dir "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
mkdir -p "$root"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
"$binary" completions bash > "$root/usr/share/bash-completion/completions/reqtop"
"$binary" completions zsh > "$root/usr/share/zsh/vendor-completions/_reqtop"
"$binary" completions fish > "$root/usr/share/fish/vendor_completions.d/reqtop.fish"
doc="$root/usr/share/doc/reqtop"
install -Dm644 README.md "$doc/README.md"
install -Dm644 CHANGELOG.md "$doc/changelog"
gzip -9n "$doc/changelog"
printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: reqtop\nSource: https://github.com/reqtop/reqtop\n\nFiles: *\nCopyright: The reqtop authors\nLicense: Apache-2.0\n On Debian systems, the licence is in /usr/share/common-licenses/Apache-2.0.\n' > "$doc/copyright"
chmod -R u=rwX,go=rX "$root"

# A static binary needs nothing; else the libc it was linked with, or a newer one.
needs=""
if readelf -d "$binary" | grep -q NEEDED; then
  least="$(readelf -V "$binary" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | cut -d_ -f2)"
  needs="Depends: libc6 (>= $least), libgcc-s1"
fi
mkdir "$root/DEBIAN"
{
  echo "Package: reqtop"
  echo "Version: $version"
  echo "Section: utils"
  echo "Priority: optional"
  echo "Architecture: $arch"
  echo "Maintainer: The reqtop authors <reqtop@users.noreply.github.com>"
  echo "Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)"
  [ -n "$needs" ] && echo "$needs"
  echo "Homepage: https://github.com/reqtop/reqtop"
  echo "Description: watch every request of an LLM serving cluster live and die"
  echo " A terminal dashboard with an OTLP endpoint inside for NVIDIA Dynamo: where each request"
  echo " queued and why it was deferred, which worker was chosen and by what margin, each attempt"
  echo " per phase, and which streams were abandoned."
} > "$root/DEBIAN/control"
mkdir -p target/debian
dpkg-deb --root-owner-group --build "$root" "target/debian/reqtop_${version}_${arch}.deb"
