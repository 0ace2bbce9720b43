"""The door through which JAX finds Tokamak: it imports this module and calls initialize()."""

import logging
import os

logger = logging.getLogger("tokamak")

PRIORITY = 600  # JAX's cuda plugin has 500, its cpu 0: where Tokamak is installed, it is the default


def initialize():
    """Registers the platform "tokamak" with JAX, where a device serves, and adds what JAX withholds from a
    platform that it does not know. JAX calls this at the first use of any backend."""
    from tokamak import _jax, _library

    _jax.announce()
    if _library.path_from_env() is None and not _jax.is_excluded():
        try:
            library = _library.path()
            found = _library.told("tok_devices", {"devices": [{}]})
        except (OSError, RuntimeError) as error:
            return _refuse(error)
        # Where the user named the platform, JAX fails either way: registered, it fails with the reason.
        if not found["devices"] and not _jax.is_asked_for():
            return _refuse(found.get("reason") or "no device serves")
        _jax.register(library, PRIORITY)
    _jax.extend()


def _refuse(reason):
    # A plugin that is registered and cannot start makes every start of JAX fail. So it stays away, quietly
    # unless it or a device of it was asked for.
    from tokamak import _jax

    asked = _jax.is_asked_for() or os.environ.get("TOKAMAK_DEVICE")
    level = logging.WARNING if asked else logging.INFO
    logger.log(level, "tokamak is not registered with JAX: %s", reason)
