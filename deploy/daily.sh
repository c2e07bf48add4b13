#!/bin/sh
# Once a day, ten minutes after midnight (UTC), and once at the start: verify-log, a backup of the
# database and of the server's keys, and the public dump. "daily.sh --once" does it once. After a
# failure the file "failed" is among the backups. While verify-log fails, all backups stay.
# Folders: TRAINMARK_BACKUPS, BENCH_SERVER_DUMPS_DIR, BENCH_SERVER_KEYS_DIR.
set -eu
umask 077

if test "${1:-}" = --once; then
  mkdir -p "$TRAINMARK_BACKUPS"
  trap 'test $? -eq 0 || touch "$TRAINMARK_BACKUPS/failed"' EXIT
  keep_days=${TRAINMARK_KEEP_DAYS:-30}
  bench-server verify-log || { damaged=yes keep_days=36500; }
  bench-server backup --daily "$TRAINMARK_BACKUPS" --keep-days "$keep_days"
  tar -C "$BENCH_SERVER_KEYS_DIR" -cf "$TRAINMARK_BACKUPS/keys.tar.partial" .
  mv "$TRAINMARK_BACKUPS/keys.tar.partial" "$TRAINMARK_BACKUPS/keys.tar"
  bench-server export --daily "$BENCH_SERVER_DUMPS_DIR"
  test -z "${damaged:-}"
  rm -f "$TRAINMARK_BACKUPS/failed"
  exit
fi
while :; do
  "$0" --once || echo "daily.sh: verify-log, the backup or the dump failed; the next attempt is tomorrow" >&2
  sleep $((86400 - $(date +%s) % 86400 + 600))
done
