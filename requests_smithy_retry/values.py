"""Objects that are their attributes: immutable values, and copies that begin anew (contract 11.1).

:func:`immutable` stands in for ``dataclass(frozen=True)``. It imports nothing and generates no code, so that the first
``mount`` does not wait for either. All that asks for the parts of a dataclass finds them: ``dataclasses.replace``,
``fields`` and ``asdict``, a subclass that is a dataclass, ``inspect.signature``.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as immutable
    from dataclasses import field, fields, replace
    from typing import Any, ClassVar

__all__ = ["FreshCopies", "field", "fields", "immutable", "replace"]


class FreshCopies:
    """A class whose copies and pickles keep all attributes but those that hold runtime state.

    A copy is made without the constructor, so a subclass may have a constructor of its own.
    """

    _past: ClassVar[frozenset[str]]
    """The attributes that a copy begins anew."""

    def _begin(self) -> None:
        """Set the attributes named in ``_past``."""
        raise NotImplementedError  # pragma: no cover - each subclass has it

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._past}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


MISSING: Any = object()


class Spec:
    """The field of a value: the arguments of ``dataclasses.field``."""

    __slots__ = ("given", "name", "type")
    name: str
    type: str

    def __init__(self, **given: Any) -> None:
        self.given = given

    @property
    def metadata(self) -> Any:
        return self.given.get("metadata", {})

    def get(self, trait: str) -> Any:
        """Return whether the field is part of the constructor, the ``repr``, comparisons: unless it says otherwise."""
        return self.given.get(trait, True)

    def default(self) -> Any:
        factory = self.given.get("default_factory")
        return self.given.get("default", MISSING) if factory is None else factory()


def specs_of(kind: Any) -> dict[str, Spec]:
    """Return the fields of a value's class, those of its bases first."""
    found: dict[str, Spec] = {}
    for base in reversed(kind.__mro__):
        found.update(vars(base).get("_specs", {}))
    return found


class Twin:
    """An attribute of a class that only introspection asks for. A real dataclass with the same fields has it."""

    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self.kind = kind

    def __get__(self, instance: Any, owner: Any) -> Any:
        import dataclasses
        import inspect

        kind = self.kind
        rows = [(name, spec.type, dataclasses.field(**spec.given)) for name, spec in specs_of(kind).items()]
        twin = dataclasses.make_dataclass(kind.__name__, rows, frozen=True, kw_only=kind._kw_only)
        return inspect.signature(twin) if self.name == "__signature__" else getattr(twin, self.name)


if not TYPE_CHECKING:  # pragma: no branch - type checkers take it for a dataclass

    def field(**given: Any) -> Any:
        """Declare a field, as ``dataclasses.field`` does."""
        return Spec(**given)

    def immutable(*, slots: bool = False, kw_only: bool = False, **shown: bool) -> Any:
        """Make a class whose instances are immutable values, compared and shown by their fields."""

        def made(kind: Any) -> Any:
            own: dict[str, Spec] = {}
            for name, annotation in vars(kind).get("__annotations__", {}).items():
                if not annotation.startswith("ClassVar"):
                    default = vars(kind).get(name, MISSING)
                    spec = default if isinstance(default, Spec) else Spec()
                    if default is not MISSING and default is not spec:
                        spec.given["default"] = default
                    spec.name, spec.type = name, annotation
                    own[name] = spec
            return _finished(kind, own, slots=slots, kw_only=kw_only, shown=shown.get("repr", True))

        return made

    def fields(kind: Any) -> Any:
        """Return the fields of a value or of its class: their names, and what was declared beside them."""
        return tuple(specs_of(kind if isinstance(kind, type) else type(kind)).values())

    def replace(instance: Any, /, **changes: Any) -> Any:
        """Return a value with some fields changed, as ``dataclasses.replace`` does."""
        for name, spec in specs_of(type(instance)).items():
            if spec.get("init"):
                changes.setdefault(name, getattr(instance, name))
        return type(instance)(**changes)


def _finished(kind: Any, own: dict[str, Spec], *, slots: bool, kw_only: bool, shown: bool) -> Any:
    """Return a class with the methods of a value; with slots it is another class of the same name."""
    for name, spec in own.items():
        default = spec.given.get("default", MISSING)
        if not slots and default is not MISSING:
            setattr(kind, name, default)
        elif name in vars(kind):
            delattr(kind, name)
    if slots:
        namespace = {name: item for name, item in vars(kind).items() if name not in ("__dict__", "__weakref__")}
        qualified = kind.__qualname__
        kind = type(kind)(kind.__name__, kind.__bases__, {**namespace, "__slots__": tuple(own)})
        kind.__qualname__ = qualified
    kind._specs, kind._kw_only = own, kw_only
    specs = specs_of(kind)
    for name, method in {**_methods(kind, specs, kw_only), **(_pickling(specs) if slots else {})}.items():
        if name not in vars(kind) and (shown or name != "__repr__"):
            method.__qualname__ = f"{kind.__qualname__}.{name}"
            setattr(kind, name, method)
    for name in ("__dataclass_fields__", "__dataclass_params__", "__signature__"):
        setattr(kind, name, Twin(name, kind))
    matched = () if kw_only else tuple(name for name, spec in specs.items() if spec.get("init"))
    setattr(kind, "__match_args__", matched)  # noqa: B010 - type checkers take it for a constant
    return kind


def _methods(kind: Any, specs: dict[str, Spec], kw_only: bool) -> dict[str, Callable[..., Any]]:
    compared = [name for name, spec in specs.items() if spec.get("compare")]
    shown = [name for name, spec in specs.items() if spec.get("repr")]
    key: Any = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash((key(self),) if len(compared) == 1 else key(self))

    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __setattr__(self: Any, name: str, item: Any) -> None:  # noqa: ARG001
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self: Any, name: str) -> None:  # noqa: ARG001
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    methods = (_constructor(kind, specs, kw_only), __eq__, __hash__, __repr__, __setattr__, __delattr__)
    return {method.__name__: method for method in methods}


def _constructor(kind: Any, specs: dict[str, Spec], kw_only: bool) -> Callable[..., None]:
    names = tuple(name for name, spec in specs.items() if spec.get("init"))
    known, positional = frozenset(names), () if kw_only else names
    then = getattr(kind, "__post_init__", None)
    put = object.__setattr__

    def __init__(self: Any, /, *args: Any, **given: Any) -> None:
        items = dict(zip(positional, args, strict=False))
        if len(args) > len(positional) or not known.issuperset(given) or not items.keys().isdisjoint(given):
            raise TypeError(_refusal(kind, positional, args, given))
        items.update(given)
        for name in names:
            if name in items:
                item = items[name]
            else:
                item = specs[name].default()
                if item is MISSING:
                    raise TypeError(f"{kind.__name__}.__init__() missing 1 required argument: {name!r}")
            put(self, name, item)
        if then is not None:
            self.__post_init__()

    return __init__


def _refusal(kind: Any, positional: tuple[str, ...], args: tuple[Any, ...], given: dict[str, Any]) -> str:
    function = f"{kind.__name__}.__init__()"
    if len(args) > len(positional):
        return f"{function} takes {len(positional) + 1} positional arguments but {len(args) + 1} were given"
    twice = [name for name in positional[: len(args)] if name in given]
    if twice:
        return f"{function} got multiple values for argument {twice[0]!r}"
    known = [name for name, spec in specs_of(kind).items() if spec.get("init")]
    unknown = next(name for name in given if name not in known)
    return f"{function} got an unexpected keyword argument {unknown!r}"


def _pickling(specs: dict[str, Spec]) -> dict[str, Callable[..., Any]]:
    """Return what copies and pickles of an object with slots need."""
    names = tuple(specs)

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, item in zip(names, state, strict=True):
            object.__setattr__(self, name, item)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}
