#!/bin/sh
# Installs the servers that `tox -e servers` needs where they are missing (Debian and Ubuntu; as root, or with sudo).
set -eu
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
$as_root apt-get update -qq || true
# Invoked with a runlevel of its own, the packages start no service.
$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y -qq --no-install-recommends nginx-light haproxy apache2 squid npm >/dev/null
command -v azurite-blob >/dev/null || $as_root npm install --silent --global azurite
