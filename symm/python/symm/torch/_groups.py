"""Communicators by name: operators of PyTorch take tensors, numbers and texts, but no objects."""

import weakref

from .._communicator import Communicator

_named: dict[str, "weakref.ref[Communicator]"] = {}


def register(communicator: Communicator, name: str) -> str:
    """Lets operators find the communicator under this name, which is the `group` of their calls.
    Returns the name. Choose the same on all ranks; ranks that are threads need one each. Does not
    keep the communicator alive. A name is free again once its communicator is destroyed."""
    if not isinstance(communicator, Communicator):
        raise TypeError(f"{communicator!r} is not a Communicator")
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}, not a text")
    current = _named[name]() if name in _named else None
    if current is not None and current is not communicator and current._comm.is_usable():
        raise ValueError(f"another communicator is registered as {name!r}: destroy it, or choose "
                         "another name")
    _named[name] = weakref.ref(communicator)
    return name


def registered(group: str) -> Communicator:
    """The communicator of this name, which may be destroyed: its calls say so."""
    if group not in _named:
        raise ValueError(f"no communicator is registered as {group!r}: call "
                         "symm.torch.register(communicator, name)")
    communicator = _named[group]()
    if communicator is None:
        raise ValueError(f"the communicator that was registered as {group!r} is gone: keep a "
                         "reference to it, since register() does not")
    return communicator
