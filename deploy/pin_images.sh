#!/bin/sh
# Pins each base image to the digest that its tag has now, so that every build and start uses the
# same bytes. Run it again to update the digests. It needs docker and access to the registries.
set -eu
cd "$(dirname "$0")/.."
files="docker-compose.yml deploy/server.Dockerfile deploy/agent.Dockerfile"
sed -nE 's/^( *image:|FROM) ([^ @]+:[^ @]+)(@[^ ]+)?( AS .*)?$/\2/p' $files |
  grep -v '^trainmark-' | sort -u |
  while read -r image; do
    digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
    printf '%s' "$digest" | grep -Eq '^sha256:[0-9a-f]{64}$' || { echo "$image: no digest" >&2; exit 1; }
    sed -Ei.old "s#((image:|FROM) $image)(@[^ ]+)?( |\$)#\1@$digest\4#" $files
    for file in $files; do rm "$file.old"; done
    echo "$image@$digest"
  done
