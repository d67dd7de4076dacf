"""The library: what `@mill.job` and `enqueue` are, and what an application sees of its jobs."""

from workmill.client.function import JobFunction, PreparedJob
from workmill.client.handle import Job
from workmill.client.mill import Workmill
from workmill.client.options import Options

__all__ = ["Job", "JobFunction", "Options", "PreparedJob", "Workmill"]
