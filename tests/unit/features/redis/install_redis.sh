#!/bin/sh
# Installs redis-server where it is missing (Debian and Ubuntu; as root, or with sudo).
set -eu
command -v redis-server >/dev/null && exit 0
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
$as_root apt-get update -qq || true
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server >/dev/null
command -v redis-server >/dev/null
