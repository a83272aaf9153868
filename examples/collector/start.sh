#!/bin/sh
# libpq reads passwords, and discreet keys, from files that only their owner may read; a secret is mounted as it pleases the engine.
set -eu
umask 077
printf 'database:5432:collector:collector:%s\n' "$(cat /run/secrets/database-password)" > /tmp/pgpass
cat /run/secrets/seal > /tmp/seal
cat /run/secrets/collector-key > /tmp/collector-key
exec discreet collect "$@"
