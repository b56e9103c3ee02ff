//! What needs several engines, in one program: each would have all engines in it.

mod common;
mod connections;
mod database_evidence;
mod decision_support;
mod document;
mod evaluation;
mod examples;
mod forecast;
mod iceberg;
mod iceberg_cycles;
mod many_databases;
mod mariadb;
mod movr;
mod new_engine;
mod new_provisioner;
mod order_entry;
mod policy;
mod postgres;
mod replicas;
mod schema;
mod secrets;
mod tables;
mod trino;
