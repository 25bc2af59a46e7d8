"""Which domains make a host's total, so that nothing is counted twice.

Standard library only. docs/guide/energy.md says why.
"""

from collections.abc import Mapping, Sequence

from scalesweep.compute.power.domains import Domain

# Of several meters of the same thing the first of these that is there. pm_counters count at 10 Hz
# in hardware; a hwmon meter is read with every sample, IPMI at its own pace.
_NODE = ("pm_counters", "hwmon", "ipmi")
_CPU = ("rapl", "pm_counters", "hwmon")


def counted(domains: Sequence[Domain], joules: Mapping[str, float]) -> tuple[set[str], list[str]]:
    """Names of the domains that count, and what is to be said of the choice.

    ``joules``: what each domain measured. A meter of the whole node is used alone. Without one:
    packages and DRAM (or psys, which holds both), and each GPU once. Cores and uncore are inside
    their package; sensors whose place is not known never count.
    """
    for source in _NODE:
        meters = [d for d in domains if d.part == "node" and d.source == source]
        if meters:
            more = len(meters) - 1
            said = [f"{more} more meters of the node besides {meters[0].name}"] if more else []
            return {meters[0].name}, said
    cpus, said = _cpus(domains, joules)
    return cpus | _gpus(domains), said


def _cpus(domains: Sequence[Domain], joules: Mapping[str, float]) -> tuple[set[str], list[str]]:
    packages: list[Domain] = []
    for source in _CPU:
        packages = [d for d in domains if d.part == "package" and d.source == source]
        if packages:
            break
    sources = {d.source for d in packages} or {"rapl"}
    memory = [d for d in domains if d.part == "dram" and d.source in sources]
    psys = [d for d in domains if d.part == "psys"]
    inside = sum(joules[d.name] for d in packages)
    if psys and sum(joules[d.name] for d in psys) >= inside:
        return {d.name for d in psys}, []
    said = ["psys counts less than the packages and is left out"] if psys else []
    return {d.name for d in (*packages, *memory)}, said


def _gpus(domains: Sequence[Domain]) -> set[str]:
    gpus = [d for d in domains if d.part == "gpu"]
    chosen = [d for d in gpus if d.source in ("nvml", "nvidia-smi")]
    devices, known = {d.device for d in chosen}, bool(chosen)
    for gpu in gpus:
        # Without its address it is unknown whether it was counted already.
        new = gpu.device not in devices if gpu.device else not known
        if gpu.source == "hwmon" and new:
            chosen.append(gpu)
    return {d.name for d in chosen or gpus}
