"""What this project claims about speed, measured: `python -m bench.NAME`, or `make bench`."""
