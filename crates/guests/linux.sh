#!/bin/sh
# Fetches Linux as distributions pack it. The drivers for the serial lines and for an initramfs are in the images; no
# modules are needed.
#   linux.sh            the one for virtual machines of this computer's release of Debian, to target/linux/vmlinuz
#   linux.sh RELEASE…   those of the releases below, each to target/linux/RELEASE/vmlinuz
# apt verifies them by the keys of Debian, which vouches for those of Ubuntu.
set -eu
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Makes apt know the packages of the release $2 at $1, signed by the keys $3, and no others.
point_apt_at() {
    mkdir -p "$scratch/lists/partial" "$scratch/archives/partial"
    cat >"$scratch/apt.conf" <<EOF
Dir::State::Lists "$scratch/lists";
Dir::State::Status "/dev/null";
Dir::Cache "$scratch";
Dir::Etc::SourceList "$scratch/sources.list";
Dir::Etc::SourceParts "-";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "root";
EOF
    echo "deb [signed-by=$3] $1 $2 main" >"$scratch/sources.list"
    export APT_CONFIG="$scratch/apt.conf"
    apt-get update -qq
}

point_apt_at_debian() {
    point_apt_at http://deb.debian.org/debian "$1" /usr/share/keyrings/debian-archive-keyring.gpg
}

point_apt_at_ubuntu() {
    keys=$scratch/usr/share/keyrings/ubuntu-archive-keyring.gpg
    if ! [ -e "$keys" ]; then
        point_apt_at_debian trixie
        unpack ubuntu-keyring './usr/share/keyrings/*'
    fi
    point_apt_at http://archive.ubuntu.com/ubuntu "$1" "$keys"
}

# Unpacks the files of the package $1 that match $2; fails if there are none.
unpack() {
    rm -f "$scratch"/*.deb
    (cd "$scratch" && apt-get download -qq "$1")
    dpkg-deb --fsys-tarfile "$scratch"/*.deb | tar -x -C "$scratch" --wildcards "$2" 2>/dev/null
}

# Fetches the kernel that the package $1 depends on to the folder $2. Its image may be in a package of its own.
fetch() {
    packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances "$1" 2>/dev/null | grep -E '^linux-(image|binary)-[0-9]' | sort -u)
    if [ -z "$packages" ]; then
        echo "linux.sh: apt knows no $1; run apt-get update" >&2
        exit 1
    fi
    for package in $packages; do
        unpack "$package" '*/vmlinuz*' || continue
        image=$(find "$scratch" -name 'vmlinuz*' -type f)
        mkdir -p "$2"
        mv "$image" "$2/vmlinuz"
        echo "$2/vmlinuz: $package"
        return
    done
    echo "linux.sh: no package that $1 depends on has an image" >&2
    exit 1
}

if [ $# = 0 ]; then
    fetch linux-image-cloud-amd64 "$PWD/target/linux"
fi
for release; do
    case $release in
    focal | jammy)
        point_apt_at_ubuntu "$release"
        newest=linux-image-virtual
        ;;
    *-rt)
        point_apt_at_debian "${release%-rt}"
        newest=linux-image-rt-amd64
        ;;
    *)
        point_apt_at_debian "$release"
        newest=linux-image-cloud-amd64
        ;;
    esac
    fetch "$newest" "$PWD/target/linux/$release"
done
