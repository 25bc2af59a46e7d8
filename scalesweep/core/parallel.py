"""Work shared among processes on this host."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent

_taken: list[tuple[Callable[..., Any], Any]] = []  # in a process of the pool


def shared_map(
    function: Callable[[Any, Any], Any],
    work: Any,
    items: Sequence[Any],
    processes: int,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Any]:
    """``[function(work, item) for item in items]``, by so many processes.

    Items begin in their order; ``work`` is handed to each process once. All of it can be pickled.
    ``meanwhile`` is called here once, while other processes are at work if there are any.
    Raises UserError where a process was killed.
    """
    if processes == 1 or len(items) < 2:
        meanwhile()
        return [function(work, item) for item in items]
    chunk = max(1, min(32, len(items) // 256))
    try:
        with ProcessPoolExecutor(processes, initializer=_take, initargs=(function, work)) as pool:
            results = pool.map(_call, items, chunksize=chunk)
            meanwhile()
            return list(results)
    except BrokenProcessPool:
        raise UserError("a worker process was killed (out of memory?)") from None


def _take(function: Callable[..., Any], work: Any) -> None:
    end_with_parent()
    _taken.append((function, work))


def _call(item: Any) -> Any:
    function, work = _taken[0]
    return function(work, item)
