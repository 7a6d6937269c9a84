#!/bin/sh
# Makes Temporal's two databases and brings their schemas up to date; run before each start of the server, so that an
# upgrade is a new image version and nothing else. Each step leaves alone what is there. SQL_* name the server and the role.
set -eu
for name in temporal temporal_visibility; do
  folder=temporal
  if [ "$name" = temporal_visibility ]; then folder=visibility; fi
  temporal-sql-tool --database "$name" create
  temporal-sql-tool --database "$name" setup-schema --version 0.0
  temporal-sql-tool --database "$name" update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$folder/versioned"
done
