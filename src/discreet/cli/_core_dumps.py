"""Disable core dumps in commands that read records: a dump would write all of them to disk."""

import resource


def disable_core_dumps() -> None:
    """Disable core dumps for this process."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
