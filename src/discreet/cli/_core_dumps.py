"""A core dump of a command that reads records is all of them on a disk: there is none."""

import resource


def disable_core_dumps() -> None:
    """For this process, from now on."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
