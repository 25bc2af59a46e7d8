"""Collectives of Horovod over message sizes: allreduce, broadcast, allgather."""
