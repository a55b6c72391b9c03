"""A cluster as teams run it, on loopback: PostgreSQL under Patroni with etcd, behind haproxy and PgBouncer."""
