-- The database and its two roles. A superuser runs this once: psql -f deploy/postgresql/roles.sql
-- The passwords are in two files of the folder TRAINMARK_SECRETS; deploy/secrets.sh writes them.
\set ON_ERROR_STOP on
\set migrate_password `cat "$TRAINMARK_SECRETS/migrate_password"`
\set server_password `cat "$TRAINMARK_SECRETS/server_password"`

-- Owns the tables: for bench-server migrate alone.
CREATE ROLE trainmark_migrate LOGIN PASSWORD :'migrate_password';
-- Reads and writes rows, and can neither make, change, truncate nor drop a table: for all else.
CREATE ROLE trainmark_server LOGIN PASSWORD :'server_password';

CREATE DATABASE trainmark OWNER trainmark_migrate TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE trainmark FROM PUBLIC;
GRANT CONNECT ON DATABASE trainmark TO trainmark_server;
\connect trainmark
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO trainmark_server;
ALTER DEFAULT PRIVILEGES FOR ROLE trainmark_migrate IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO trainmark_server;
ALTER DEFAULT PRIVILEGES FOR ROLE trainmark_migrate IN SCHEMA public
  GRANT USAGE ON SEQUENCES TO trainmark_server;
