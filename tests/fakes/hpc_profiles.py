"""Profiles of Score-P, HPCToolkit and MAP: small ones, in the form of published ones."""

import json
from collections.abc import Mapping
from typing import Any

# NAS BT-MZ, the beginning of the table (olcf/olcf-user-docs, software/profiling/Scorep.rst).
SCOREP_BT = """\
Estimated aggregate size of event trace:                   40GB
Estimated requirements for largest trace buffer (max_buf): 10GB
Estimated memory requirements (SCOREP_TOTAL_MEMORY):       10GB
(warning: The memory requirements can not be satisfied by Score-P to avoid
 intermediate flushes when tracing. Set SCOREP_TOTAL_MEMORY=4G to get the
 maximum supported memory or reduce requirements using USR regions filters.)

Flt type      max_buf[B]         visits  time[s]  time[%]  time/visit[us]      region
     ALL  10,690,196,070  1,634,070,493  1081.30    100.0            0.66         ALL
     USR  10,666,890,182  1,631,138,069   470.23     43.5            0.29         USR
     OMP      22,025,152      2,743,808   606.80     56.1          221.15         OMP
     COM       1,178,450        181,300     2.36      0.2           13.04         COM
     MPI         102,286          7,316     1.90      0.2          260.07         MPI

     USR   3,421,305,420    522,844,416   144.46     13.4            0.28  matmul_sub
     USR   3,421,305,420    522,844,416   102.40      9.5            0.20  matvec_sub
"""
# The beginning of what `scalasca -examine -s` prints for OpenFOAM's simpleFoam on 72 processes.
SCOREP_FOAM = """\
flt     type  max_buf[B]      visits time[s] time[%] time/visit[us]  region
         ALL 376,634,203 282,682,028 1916.23   100.0           6.78  ALL
         MPI 373,398,205 276,097,498 1003.25    52.4           3.63  MPI
      SCOREP          46          72  907.56    47.4    12605046.59  SCOREP
     PTHREAD   3,519,074   6,584,458    5.43     0.3           0.82  PTHREAD

      SCOREP          46          72  907.56    47.4    12605046.59  simpleFoam
         MPI  11,272,292  11,935,368  289.20    15.1          24.23  MPI_Allreduce
         MPI   4,156,230  11,495,788  270.64    14.1          23.54  MPI_Waitall
         MPI          84          72  164.58     8.6     2285835.79  MPI_Init_thread
"""


def hpctoolkit(unit: str = "usec", numbers: bool = True) -> str:
    """A database of two procedures, one of which calls itself, and of MPI with what is below it.

    As the databases in LLNL/hatchet (hatchet/tests/data): 10 s of all ranks together, of which
    ``solve`` has 4 s by itself and MPI 5 s.
    """

    def values(inclusive: float, exclusive: float | None = None) -> str:
        scale = 1e6 if unit == "usec" else 1.0
        own = f'<M n="3" v="{exclusive * scale:g}"/>' if exclusive is not None else ""
        return f'<M n="2" v="{inclusive * scale:g}"/>{own}\n' if numbers else ""

    procedures = ("main", "solve", "MPI_Allreduce", "psm_poll")
    table = "".join(f'<Procedure i="{i}" n="{name}"/>' for i, name in enumerate(procedures))
    metrics = "".join(
        f'<Metric i="{i}" n="CPUTIME ({unit}):Sum ({kind})" v="derived-incr" show="1"/>'
        for i, kind in ((2, "I"), (3, "E"))
    )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE HPCToolkitExperiment [\n'
        "<!ELEMENT HPCToolkitExperiment (Header, SecCallPathProfile*)>\n]>\n"
        '<HPCToolkitExperiment version="2.1">\n<Header n="app"/>\n<SecCallPathProfile n="a">\n'
        f"<SecHeader><MetricTable>{metrics}</MetricTable><ProcedureTable>{table}</ProcedureTable>"
        "</SecHeader>\n<SecCallPathProfileData>\n"
        + values(10.0)
        + '<PF i="2" n="0">\n' + values(10.0, 1.0)
        + '<C i="3"><PF i="4" n="1">\n' + values(9.0, 2.0)
        + '<S i="5">\n' + values(2.0, 2.0) + "</S>\n"
        + '<C i="6"><PF i="7" n="1">\n' + values(7.0, 2.0)
        + '<C i="8"><PF i="9" n="2">\n' + values(5.0, 0.5)
        + '<C i="10"><PF i="11" n="3">\n' + values(4.5, 4.5)
        + "</PF></C></PF></C></PF></C></PF></C></PF>\n"
        "</SecCallPathProfileData>\n</SecCallPathProfile>\n</HPCToolkitExperiment>\n"
    )  # fmt: skip


def map_json(scale: float = 1.0, **changes: Any) -> str:
    """An export of MAP: 4 processes, 20 s, in four windows (keys as in Forge's user guide)."""
    activity = {
        "normal_compute": [1.0, 0.5, 0.25, 0.25], "point_to_point_mpi": [0.0, 0.25, 0.25, 0.5],
        "collective_mpi": [0.0, 0.25, 0.25, 0.25], "io_reads": [0.0, 0.0, 0.25, 0.0],
        "sleep": [0.0] * 4,
    }  # fmt: skip
    scaled = {name: [scale * value for value in values] for name, values in activity.items()}
    info: Mapping[str, Any] = {
        "command_line": "mpirun -n 4 ./app", "create_version": "24.1", "machine": "n1",
        "number_of_nodes": 2, "number_of_processes": 4, "runtime": "20000",
        "start_time": "2026-03-01T08:00:00",
    }  # fmt: skip
    samples = {"activity": {"main_thread": scaled}, "count": 4, "metrics": {},
               "window_start_offsets": [0, 5, 10, 15]}  # fmt: skip
    return json.dumps({"info": {**info, **changes}, "samples": samples}, indent=1) + "\n"
