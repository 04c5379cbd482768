#!/bin/sh
# Installs the servers that `tox -e servers` needs where they are missing (Debian and Ubuntu; as root, or with sudo).
set -eu
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
$as_root apt-get update -qq || true
packages="nginx-light haproxy apache2 squid"
command -v npm >/dev/null || packages="$packages npm"  # that of NodeSource is part of its nodejs
# Invoked with a runlevel of its own, the packages start no service.
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y -qq --no-install-recommends $packages >/dev/null
command -v azurite-blob >/dev/null || $as_root npm install --silent --global azurite
