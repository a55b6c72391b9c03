#!/bin/sh
# For compose.yaml, once, when the database is made: whoever has the ledger's password owns the ledger and no more.
# A superuser could run programs where PostgreSQL runs. Without a password that one gets in only from inside.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$POSTGRES_PASSWORD" --username="$POSTGRES_USER" --dbname=postgres <<END
CREATE ROLE acp_proxy LOGIN PASSWORD :'password';
CREATE DATABASE acp_proxy OWNER acp_proxy;
ALTER ROLE "$POSTGRES_USER" PASSWORD NULL;
END
