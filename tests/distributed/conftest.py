"""A cluster of this machine."""

import pytest


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of two workers in processes of their own."""
    distributed = pytest.importorskip("distributed", reason="needs the extra [dask]")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
