#!/bin/sh
# Makes the data of a PostgreSQL server, if there are none yet, and runs it. It is told what the official image is told: POSTGRES_USER,
# POSTGRES_PASSWORD, POSTGRES_DB and PGDATA; arguments are those of the server.
set -eu
: "${POSTGRES_PASSWORD:?it is the password of the user POSTGRES_USER, and must be set}"
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    umask 077
    printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
    initdb -D "$PGDATA" --username="$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 \
        --encoding=UTF8 --locale=C
    : >/tmp/password
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    if [ "$database" != postgres ]; then
        printf 'CREATE DATABASE "%s"\n' "$database" >/tmp/create.sql
        # Its prompts would stand behind the last words of a server that does not start.
        postgres --single -D "$PGDATA" postgres </tmp/create.sql >/dev/null
    fi
fi
unset POSTGRES_PASSWORD
exec postgres -D "$PGDATA" -c 'listen_addresses=*' "$@"
