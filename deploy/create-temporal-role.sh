#!/bin/sh
# Run once by the Postgres image when it makes its cluster: Temporal's own role, which makes its own databases.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$TEMPORAL_DB_PASSWORD" <<'SQL'
create role temporal login createdb password :'password';
SQL
