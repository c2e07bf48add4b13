-- The database and its two roles. A superuser runs this once: psql -f deploy/postgresql/roles.sql
-- The passwords are in two files of the folder TRAINMARK_SECRETS; deploy/secrets.sh writes them.
\set ON_ERROR_STOP on
\set migrate_password `cat "$TRAINMARK_SECRETS/migrate_password"`
\set server_password `cat "$TRAINMARK_SECRETS/server_password"`
-- An empty password is one that could not be read; psql itself goes on after a failed `cat`.
SELECT length(:'migrate_password') > 0 AND length(:'server_password') > 0 AS readable \gset
\if :readable
\else
DO $$ BEGIN RAISE EXCEPTION 'no passwords: set TRAINMARK_SECRETS to the folder that deploy/secrets.sh wrote, and let this user read it'; END $$;
\endif

-- Owns the tables: for bench-server migrate alone.
CREATE ROLE trainmark_migrate LOGIN PASSWORD :'migrate_password';
-- For all else. It can neither make, change, truncate nor drop a table; what it may do with rows,
-- bench-server migrate grants table by table (server/src/bench_server/db/privileges.py).
CREATE ROLE trainmark_server LOGIN PASSWORD :'server_password';

CREATE DATABASE trainmark OWNER trainmark_migrate TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE trainmark FROM PUBLIC;
GRANT CONNECT ON DATABASE trainmark TO trainmark_server;
\connect trainmark
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO trainmark_server;
