"""Sequences whose items are made when they are asked for, because there may be 100,000."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence that makes its items; equal to every other one with the same items."""

    @abstractmethod
    def item(self, index: int) -> T:
        """The item at an index from 0 on."""

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        """One item, or several."""
        if isinstance(index, slice):
            return [self.item(place) for place in range(len(self))[index]]
        return self.item(range(len(self))[index])

    @abstractmethod
    def __iter__(self) -> Iterator[T]:
        """All items."""

    def __eq__(self, other: object) -> bool:
        """Whether another sequence has the same items."""
        return self is other or (isinstance(other, Sequence) and list(self) == list(other))

    __hash__ = None  # type: ignore[assignment]  # as of a list
