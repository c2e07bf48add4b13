#!/bin/sh
# Makes what docker-compose.yml reads as secrets: passwords, the database's addresses for the two
# roles, and a self-signed certificate for NAME. A file that exists is left as it is: put the
# certificate of your authority into tls_certificate and tls_key.
# usage: deploy/secrets.sh NAME [FOLDER]    (FOLDER: deploy/secrets)
set -eu
name=${1:?usage: deploy/secrets.sh NAME [FOLDER]}
folder=${2:-$(dirname "$0")/secrets}
database=${TRAINMARK_DATABASE:-database}

# Users of containers read the files; the folder is closed to other users of this machine.
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"
umask 022

for secret in postgres_password migrate_password server_password grafana_password; do
  test -e $secret || openssl rand -hex 24 > $secret
done
for role in migrate server; do
  test -e ${role}_url ||
    echo "postgresql+psycopg://trainmark_$role:$(cat ${role}_password)@$database/trainmark" > ${role}_url
done
if ! test -e tls_key; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \
    -subj "/CN=$name" -addext "subjectAltName=DNS:$name" -keyout tls_key -out tls_certificate \
    2> /dev/null
  chmod 644 tls_key
fi
