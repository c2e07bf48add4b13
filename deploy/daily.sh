#!/bin/sh
# Once a day, ten minutes after midnight (UTC), and once at the start: verify-log, a backup of the
# database and of the server's keys, and the public dump. "daily.sh --once" does it once. After a
# failure the file "failed" is among the backups. While verify-log fails, all backups stay.
# TRAINMARK_BACKUPS is the folder of the backups, ./backups without it; there is a dump where
# BENCH_SERVER_DUMPS_DIR is set. Everything else is a setting of the server.
set -eu
umask 077
backups=${TRAINMARK_BACKUPS:-backups}

if test "${1:-}" = --once; then
  mkdir -p "$backups"
  trap 'test $? -eq 0 || touch "$backups/failed"' EXIT
  keep_days=${TRAINMARK_KEEP_DAYS:-30}
  bench-server verify-log || { damaged=yes keep_days=36500; }
  bench-server backup --daily "$backups" --keep-days "$keep_days"
  bench-server keys archive "$backups/keys.tar"
  test -z "${BENCH_SERVER_DUMPS_DIR:-}" || bench-server export --daily "$BENCH_SERVER_DUMPS_DIR"
  test -z "${damaged:-}"
  rm -f "$backups/failed"
  exit
fi
while :; do
  "$0" --once || echo "daily.sh: verify-log, the backup or the dump failed; the next attempt is tomorrow" >&2
  sleep $((86400 - $(date +%s) % 86400 + 600))
done
