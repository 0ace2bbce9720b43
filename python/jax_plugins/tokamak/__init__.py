"""The module through which JAX discovers Tokamak: JAX imports it and calls initialize()."""

import logging
import os

logger = logging.getLogger("tokamak")

PRIORITY = 600  # JAX's cuda plugin has 500, its cpu 0: an installed Tokamak is the default


def initialize():
    """Registers the platform "tokamak" with JAX if a device is available, and adds the features that JAX does not
    provide for unknown platforms. JAX calls this at the first use of any backend."""
    from tokamak import _jax, _library

    _jax.announce()
    if name := _jax.misspelt():
        logger.warning("JAX_PLATFORMS has %r; did you mean %r?", name, _jax.PLATFORM)
    if _library.path_from_env() is None and not _jax.is_excluded():
        try:
            library = _library.path()
            found = _library.query_json("tok_devices", {"devices": [{}]})
        except (OSError, RuntimeError) as error:
            return _decline(error)
        # If the user named the platform, JAX fails in either case; if it is registered, the error has the reason.
        if not found["devices"] and not _jax.is_asked_for():
            return _decline(found.get("reason") or "no device serves")
        _jax.register(library, PRIORITY)
    _jax.extend()
    if not _jax.is_excluded():
        _warn_of_costs()


def _warn_of_costs():
    """TOKAMAK_LINT. Advice must not keep a program from running."""
    try:
        from tokamak import _lint_warn

        _lint_warn.start()
    except Exception as error:
        logger.info("tokamak: no lint warnings: %r", error)


def _decline(reason):
    # A registered plugin that cannot start makes every start of JAX fail. So do not register, and warn only
    # if the platform or one of its devices was requested.
    from tokamak import _jax

    asked = _jax.is_asked_for() or os.environ.get("TOKAMAK_DEVICE")
    level = logging.WARNING if asked else logging.INFO
    logger.log(level, "tokamak is not registered with JAX: %s", reason)
