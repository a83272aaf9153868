#!/bin/sh
# libpq reads passwords from a file that only its owner may read; a secret is mounted as it pleases the engine.
set -eu
umask 077
printf 'database:5432:collector:collector:%s\n' "$(cat /run/secrets/database-password)" > /tmp/pgpass
exec discreet collect "$@"
