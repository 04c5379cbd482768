"""The error of an invalid Smithy model (contract 3)."""

from __future__ import annotations


class SmithyModelError(ValueError):
    """A model that cannot be used. The message names the file, the place in it, and what was expected there.

    >>> print(SmithyModelError("api.json", "/shapes", "expected an object, found null"))
    api.json: at /shapes: expected an object, found null

    :param source: the path as the user gave it.
    :param place: a JSON pointer into the file, ``line 3, column 7``, or an empty string for the whole file.
    :param problem: a phrase that names the expected and the found.
    """

    def __init__(self, source: str, place: str, problem: str) -> None:
        super().__init__(source, place, problem)
        self.source = source
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        where = f"at {self.place}: " if self.place != "" else ""
        return f"{self.source}: {where}{self.problem}"
