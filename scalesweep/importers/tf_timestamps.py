"""What TensorFlow itself writes into a log: times, GPUs, and which GPUs reach each other."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import file_dates

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d{1,9}: [IWEF] ", re.ASCII)
_CLOCK = re.compile(
    r"(?:memoryClockRate ?\(GHz\):?|coreClock:) ?(\d{1,3}\.\d{1,9})(?:GHz)?", re.ASCII
)
_BUS = re.compile(r"pciBusID:? ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f.:]{4,12})", re.ASCII)
_MEMORY = re.compile(
    r"(?:Total memory|totalMemory|deviceMemorySize): (\d{1,6}\.\d{1,6})GiB", re.ASCII
)
_CREATED = re.compile(
    r"Creat(?:ing|ed) TensorFlow device \(\S*?[gG][pP][uU]:(?P<index>\d{1,5})\b.{0,120}?"
    r"name: (?P<name>.{1,80}?), pci bus id: (?P<bus>[0-9A-Fa-f.:]{1,20})",
    re.ASCII,
)
_STARTUP = (
    "cpu_feature_guard",
    "with properties",
    "Creating TensorFlow device",
    "Created TensorFlow device",
)
_PEER = re.compile(r"Peer access not supported between device ordinals (\d{1,5}) and (\d{1,5})")
_PEER_ROW = re.compile(r"\] {0,8}(\d{1,5}):((?: +[YN]){1,64}) *$", re.ASCII)


def is_startup(text: str) -> bool:
    """Whether TensorFlow writes this line when a program begins to use it."""
    return any(sign in text for sign in _STARTUP)


@dataclass
class TensorFlowLog:
    """Collects what TensorFlow says about one run."""

    stamps: list[datetime] = field(default_factory=list)
    # By rank (None if no label tells it) and the device's number: name and bus id.
    devices: dict[tuple[int | None, int], tuple[str, str]] = field(default_factory=dict)
    # By bus id: clock in GHz, memory in GiB.
    properties: dict[str, dict[str, float]] = field(default_factory=dict)
    no_peer_access: dict[str, None] = field(default_factory=dict)
    peer_rows: dict[str, None] = field(default_factory=dict)
    _clock: float | None = None
    _bus: str = ""

    def add(self, line: Line) -> None:
        """Take what a line states."""
        text = line.text
        if stamp := _STAMP.search(text):
            self._stamp(stamp[1])
        if "with properties" in text:
            self._bus, self._clock = "", None
        elif created := _CREATED.search(text):
            key = line.rank, int(created["index"])
            self.devices.setdefault(key, (created["name"], created["bus"].lower()))
        elif match := _PEER.search(text):
            self.no_peer_access[f"{match[1]}-{match[2]}"] = None
        elif row := _PEER_ROW.search(text):
            self.peer_rows[f"{row[1]}: {' '.join(row[2].split())}"] = None
        else:
            self._property(text)

    def _stamp(self, text: str) -> None:
        try:
            self.stamps.append(datetime.fromisoformat(text).replace(tzinfo=UTC))
        except ValueError:
            return  # digits, but no date

    def _property(self, text: str) -> None:
        clock, bus, memory = _CLOCK.search(text), _BUS.search(text), _MEMORY.search(text)
        if clock:
            self._clock = float(clock[1])
        if bus:
            self._bus = bus[1].lower()
        # The bus id comes before the clock in new versions, after it in old ones.
        if self._bus and self._clock is not None and (clock or bus):
            self.properties.setdefault(self._bus, {})["clock_ghz"] = self._clock
            self._clock = None
        if memory and self._bus:
            self.properties.setdefault(self._bus, {})["memory_gib"] = float(memory[1])

    @property
    def dates(self) -> str:
        """What the dates of a record made from this log mean."""
        if not self.stamps:
            return file_dates("the log")
        return (
            "started and ended are the first and last time in TensorFlow's own lines, which name "
            "no time zone; taken for UTC"
        )

    def gpus(self, used: int) -> list[dict[str, Any]]:
        """The GPUs of every rank, at most ``used`` of each: a log shows unused ones too."""
        ordered = sorted(self.devices.items(), key=lambda item: (item[0][0] or 0, item[0][1]))
        return [
            {"name": name, "pci.bus_id": bus, **self.properties.get(bus, {})}
            for (_, index), (name, bus) in ordered
            if index < used
        ]

    def gpu_model(self, used: int) -> str | None:
        """Names of the kinds of GPUs that a run used; None if the log shows none."""
        return ", ".join(sorted({gpu["name"] for gpu in self.gpus(used)})) or None

    def node(self, used: int) -> dict[str, Any]:
        """``environment.node`` of a record: GPUs, and what was said of peer access."""
        node: dict[str, Any] = {
            "gpu_model": self.gpu_model(used),
            "devices": self.gpus(used),
            "no_peer_access": list(self.no_peer_access),
            "peer_access": list(self.peer_rows),
        }
        return {name: value for name, value in node.items() if value}
