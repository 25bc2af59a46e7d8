"""How ranks share the work of a step: `make` gives what computes the gradients of one.

The network is cut along the dimensions of a mesh of all ranks: into stages (`pipeline`), these into
parts of their layers (`tensor_parallel`); what is left is copied or put in shards among
data-parallel ranks (`ddp`, `fsdp2`).
"""

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from harness import no_exchange
from harness.program import EXIT_UNSUPPORTED, ProgramError
from torch_training import mesh, pipeline, tensor_parallel
from torch_training.data_parallel import DataParallel, Wrapping
from torch_training.fsdp2 import FullyShard
from torch_training.mesh import Shape
from torch_training.models.network import Network, count
from torch_training.pipeline import Pipeline
from torch_training.stamps import Stamps, api_of
from torch_training.whole import Sharing


def make(params: dict[str, Any], network: Network, rank: int, device: torch.device) -> Sharing:
    """Return what computes the gradients of a step on this rank, of the whole network on the host.

    Without exchange each data-parallel rank trains by itself. Raises ProgramError (code 69) where
    ranks cannot: they share the layers.
    """
    alone = no_exchange.left_out()
    if alone and params["tp"] * params["pp"] > 1:
        raise ProgramError(
            EXIT_UNSUPPORTED,
            f"training without exchange: with tp {params['tp']} and pp {params['pp']} a rank"
            " cannot compute without the others; it is for data_parallel alone",
        )
    shape, stamps, values = mesh.shape_of(params), Stamps(api_of(device)), count(network)
    position, ranks = mesh.position_of(shape, rank), _ranks(params, shape, device)
    networks = [network]
    if shape.pp > 1:
        numbers = mesh.stages_of(position, shape, params["virtual_stages"])
        networks = pipeline.parts(network, shape.pp * params["virtual_stages"], numbers)
    if shape.tp > 1:
        for part in networks:
            tensor_parallel.split(part, ranks["tp"], stamps)
            if params["data_parallel"] != "fsdp2":
                tensor_parallel.keep_local(part)
    if params["data_parallel"] != "fsdp2":  # which moves shards only
        networks = [part.to(device) for part in networks]
    wrapping = _wrapping(params, shape, ranks, device, stamps, alone)
    if shape.pp == 1:
        return Sharing(params, shape, position, wrapping, networks, values)
    pipelined = Pipeline(params, shape, position, wrapping, networks, values)
    pipelined.connect(ranks["pp"].get_group())
    return pipelined


def _ranks(params: dict[str, Any], shape: Shape, device: torch.device) -> DeviceMesh | None:
    """Return the mesh of all ranks: of the dimensions that it has, and FSDP2's; None for none."""
    shards = "dp_shard" if params["data_parallel"] == "fsdp2" else None
    kept = {name: size for name, size in shape._asdict().items() if size > 1 or name == shards}
    if not kept:
        return None
    return init_device_mesh(device.type, tuple(kept.values()), mesh_dim_names=tuple(kept))


def _wrapping(
    params: dict[str, Any],
    shape: Shape,
    ranks: Any,
    device: torch.device,
    stamps: Stamps,
    alone: bool,
) -> Wrapping:
    """Return how data-parallel ranks keep the same weights."""
    if params["data_parallel"] == "fsdp2":
        hybrid = shape.dp_replicate > 1 and not alone
        over = ranks["dp_replicate", "dp_shard"] if hybrid else ranks["dp_shard"]
        return FullyShard(params, device, stamps, over, alone)
    if params["data_parallel"] == "ddp" and shape.dp_replicate > 1 and not alone:
        return DataParallel(params, device, stamps, ranks["dp_replicate"].get_group())
    return Wrapping(params, device, stamps)
