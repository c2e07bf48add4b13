"""The database: connections, tables, migrations, backups, bulk statements."""
