"""Published results read into records, and a campaign of them."""

# What a source may be.
LOGS, COSMOFLOW, PROFILES, TABLE = "logs", "cosmoflow", "profiles", "table"
SOURCES = (LOGS, COSMOFLOW, PROFILES, TABLE)
