#!/bin/sh
# Makes a root directory for `scalevm kernel --root` of Debian's packages, those that they depend on, and a shell, as apt
# knows them on this computer. No script of a package runs, so nothing is configured.
#   root.sh FOLDER PACKAGE…
set -eu
if [ $# -lt 2 ]; then
    echo "usage: root.sh FOLDER PACKAGE..." >&2
    exit 2
fi
root=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances dash base-passwd "$@" | grep '^[a-z0-9]' | grep -v ':' | sort -u)
chmod 755 "$scratch"
# shellcheck disable=SC2086 # one word for each package
(cd "$scratch" && apt-get download -qq -o APT::Sandbox::User=root $packages)

# The folders of programs and libraries are links to those in /usr, as Debian's installer makes them.
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/tmp"
for folder in bin sbin lib lib64; do
    ln -sfn "usr/$folder" "$root/$folder"
done
for package in "$scratch"/*.deb; do
    # tar keeps the links, where dpkg-deb would replace them.
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
done
# As the scripts of dash and base-passwd do.
[ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
for list in passwd group; do
    [ -e "$root/etc/$list" ] || cp "$root/usr/share/base-passwd/$list.master" "$root/etc/$list"
done
chmod 1777 "$root/tmp"
# What programs do not need to run.
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale"
du -sh "$root"
