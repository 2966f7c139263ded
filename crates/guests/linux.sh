#!/bin/sh
# Fetches Debian's Linux for virtual machines, as it is packed for this release, to target/linux/vmlinuz. The drivers for
# the serial lines and for an initramfs are in the image; no modules are needed.
set -eu
cd "$(dirname "$0")/../.."
folder=$PWD/target/linux
package=$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" { print $2; exit }')
if [ -z "$package" ]; then
    echo "linux.sh: apt knows no linux-image-cloud-amd64; run apt-get update" >&2
    exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && apt-get download -qq "$package")
dpkg-deb --fsys-tarfile "$scratch"/*.deb | tar -x -C "$scratch" --wildcards './boot/vmlinuz-*'
mkdir -p "$folder"
mv "$scratch"/boot/vmlinuz-* "$folder/vmlinuz"
echo "$folder/vmlinuz: $package"
