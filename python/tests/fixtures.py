"""What every test of the package has, those with the real frameworks too."""

import random
import warnings

import numpy as np
import pytest
import tamis
import torch


@pytest.fixture(autouse=True)
def seeded():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def missed_updates_are_errors():
    """Only tests about missed updates may see the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", tamis.MissedUpdateWarning)
        yield
