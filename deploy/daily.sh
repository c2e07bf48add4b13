#!/bin/sh
# Once a day, ten minutes after midnight (UTC), and once at the start: a backup of the database and
# of the server's keys, and the public dump. "daily.sh --once" does it once.
# Folders: TRAINMARK_BACKUPS, BENCH_SERVER_DUMPS_DIR, BENCH_SERVER_KEYS_DIR.
set -eu
umask 077

if test "${1:-}" = --once; then
  bench-server backup --daily "$TRAINMARK_BACKUPS" --keep-days "${TRAINMARK_KEEP_DAYS:-30}"
  tar -C "$BENCH_SERVER_KEYS_DIR" -cf "$TRAINMARK_BACKUPS/keys.tar.partial" .
  mv "$TRAINMARK_BACKUPS/keys.tar.partial" "$TRAINMARK_BACKUPS/keys.tar"
  bench-server export --daily "$BENCH_SERVER_DUMPS_DIR"
  exit
fi
while :; do
  "$0" --once || echo "daily.sh: the backup or the dump failed; the next attempt is tomorrow" >&2
  sleep $((86400 - $(date +%s) % 86400 + 600))
done
