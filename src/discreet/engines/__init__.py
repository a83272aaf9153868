"""One private sample for each client of a table, from a laptop to a cluster; one kernel, and engines that feed it.

`sample` works on tables in memory and on files of any size; `discreet.engines.spark.sample` on Spark data frames.
"""

from discreet.errors import need_extra

try:
    from discreet.engines.domains import Cells, Labels, Numbers
    from discreet.engines.jobs import Request
    from discreet.engines.kernel import Kernel
    from discreet.engines.local import Summary, sample, sample_file
except ImportError as missing:
    need_extra("cli", missing)

from discreet.release.keyed import Secret, read_secret, write_secret

__all__ = [
    "Cells",
    "Kernel",
    "Labels",
    "Numbers",
    "Request",
    "Secret",
    "Summary",
    "read_secret",
    "sample",
    "sample_file",
    "write_secret",
]
