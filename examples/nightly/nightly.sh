#!/bin/sh
# Release the rows of one day: nightly.sh 2026-11-17
# Running it again for the same day gives the same samples and spends nothing more.
set -eu
day="${1:?say which day to release, such as 2026-11-17}"
discreet sample "data/day=$day" --client who --value what --agreement agreement.json --round "$day" \
    --secret release.secret --ledger population -o "out/$day.parquet" --force
