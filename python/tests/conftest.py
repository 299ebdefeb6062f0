"""Every test leaves the global random state as it found it; a test that does not is wrong."""

from dataclasses import fields

import pytest

try:
    import tamis
    import torch
    from fixtures import missed_updates_are_errors, seeded  # noqa: F401
    from tamis import Options
except ImportError as error:
    cure = "run `make build`, then `.venv/bin/python -m pytest`, or `pip install '.[test]'` without a folder build/"
    pytest.exit(f"the tests need the built package and torch: {error}; {cure}", returncode=4)

from support import IndexDataset

OPTIONS = {field.name for field in fields(Options)}


@pytest.fixture(autouse=True)
def single_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def make_handler():
    """BLS-InfoBatch over a data set whose losses are known; batches of 8 unless said otherwise."""

    def make(size=103, epochs=4, dataset=None, **options):
        data = IndexDataset(size) if dataset is None else dataset
        rare = {name: options.pop(name) for name in list(options) if name in OPTIONS}
        chosen = Options(**{"batch_size": 8, **rare})
        return tamis.prune(data, "bls-infobatch", epochs=epochs, options=chosen, **options)

    return make
