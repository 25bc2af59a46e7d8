"""What tests make up: records, results folders, logs, machines."""
