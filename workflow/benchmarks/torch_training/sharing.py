"""How ranks share the work of a step: `make` gives what computes the gradients of one.

The network is cut along the dimensions of a mesh of all ranks: into stages (`pipeline`), these into
parts of their layers (`tensor_parallel`); what is left is copied or put in shards among
data-parallel ranks (`ddp`, `fsdp2`).
"""

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from torch_training import pipeline, tensor_parallel
from torch_training.data_parallel import DataParallel, FullyShard, Wrapping
from torch_training.mesh import Mesh
from torch_training.models.network import Network
from torch_training.pipeline import Pipeline
from torch_training.stamps import Stamps
from torch_training.whole import Sharing


def make(params: dict[str, Any], network: Network, rank: int, device: torch.device) -> Sharing:
    """Return what computes the gradients of a step on this rank, of the whole network on the
    host."""
    mesh, shards = Mesh.of_run(params), params["data_parallel"] == "fsdp2"
    ranks = init_device_mesh(device.type, mesh, mesh_dim_names=mesh._fields)
    stamps = Stamps(torch.cuda if device.type == "cuda" else None)
    if mesh.pp > 1:
        network = pipeline.part(network, mesh.pp, mesh.stage(rank))
    if mesh.tp > 1:
        stamps.of_tensor_parallel()
        tensor_parallel.split(network, ranks["tp"])
        if not shards:
            tensor_parallel.keep_local(network)
    if not shards:  # FSDP2 moves shards only
        network = network.to(device)
    wrapping = _wrapping(params, mesh, ranks, device, stamps)
    if mesh.pp == 1:
        return Sharing(params, mesh, wrapping, network)
    pipelined = Pipeline(params, mesh, wrapping, network)
    pipelined.connect(mesh.stage(rank), ranks["pp"].get_group())
    return pipelined


def _wrapping(
    params: dict[str, Any], mesh: Mesh, ranks: DeviceMesh, device: torch.device, stamps: Stamps
) -> Wrapping:
    """Return how data-parallel ranks keep the same weights."""
    if params["data_parallel"] == "fsdp2":
        names = ("dp_replicate", "dp_shard") if mesh.dp_replicate > 1 else ("dp_shard",)
        return FullyShard(params, device, stamps, ranks[names])
    if params["data_parallel"] == "ddp" and mesh.dp_replicate > 1:
        return DataParallel(params, device, stamps, ranks["dp_replicate"])
    return Wrapping(params, device, stamps)
