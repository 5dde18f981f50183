"""``dataclass`` for nouns: what the standard library makes of ``frozen=True, slots=True``, in half of the time.

Six methods are compiled for every such class there. A crawl loads a hundred of them, and that was a third of what it
takes to load it. Here a class has its ``__init__`` compiled, because every call of it counts, and the other methods are
the same for all. For the type checker, ``replace``, ``fields`` and ``asdict`` nothing is different.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from dataclasses import dataclass as standard
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, **more: bool) -> Callable[[type], type]:
        """A decorator, as the standard library's. Whatever is not frozen, or has no slots, is left to that."""
        if not frozen or not slots or more.keys() - {"kw_only"}:
            return standard(frozen=frozen, slots=slots, **more)
        return lambda plain: _noun(plain, **more)


def _noun(plain: type, *, kw_only: bool = False) -> type:
    own = vars(plain)
    made: Any = standard(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(plain)
    compared = [one.name for one in fields(made) if one.compare]
    shown = [one.name for one in fields(made) if one.repr]
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda _: ()

    def same(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    def spelled(self: Any) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({said})"

    for name, method in {"__eq__": same, "__hash__": hashed, "__repr__": spelled}.items():
        if own.get(name) is None:  # what a class says itself stands
            setattr(made, name, method)
    made.__init__ = _init(made)
    made.__getstate__, made.__setstate__ = _state, _restore
    made.__setattr__ = made.__delattr__ = _refuse
    return cast(type, made)


def _init(made: Any) -> Callable[..., None]:
    """Puts each value into its slot by the slot's own setter: assigning is what a noun refuses."""
    scope: dict[str, Any] = {"MISSING": MISSING}
    positional: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for one in fields(made):
        assert one.init, "all that a noun has is given when it is made"
        scope[f"set_{one.name}"] = getattr(made, one.name).__set__
        parameter = value = one.name
        if one.default is not MISSING:
            scope[f"default_{one.name}"] = one.default
            parameter = f"{one.name}=default_{one.name}"
        elif one.default_factory is not MISSING:
            scope[f"make_{one.name}"] = one.default_factory
            parameter = f"{one.name}=MISSING"
            value = f"make_{one.name}() if {one.name} is MISSING else {one.name}"
        (named if one.kw_only else positional).append(parameter)
        body.append(f"    set_{one.name}(self, {value})\n")
    if hasattr(made, "__post_init__"):
        body.append("    self.__post_init__()\n")
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n{''.join(body) or '    pass'}", scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


def _refuse(self: Any, name: str, value: object = None) -> None:
    raise FrozenInstanceError(f"cannot change '{name}': a {self.__class__.__name__} stays as it is")
