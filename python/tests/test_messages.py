"""Wrong arguments get a sentence: name, rule, value and cure."""

import os
import subprocess
import sys

import pytest
import tamis
import torch
from support import REPOSITORY, IndexDataset
from torch.utils.data import DataLoader

DATA = IndexDataset(20)


def bls(**options):
    return tamis.prune(DATA, "bls-infobatch", epochs=3, **options)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: bls(prune_ratio=None),
            r"prune: prune_ratio must be a number in \[0, 0.9\]; leave it out.*, got None",
        ),
        (lambda: tamis.InfoBatch(DATA, 3, prune_ratio="x"), "InfoBatch: prune_ratio must be a num"),
        (lambda: bls(alpha=[0.7]), r"prune: alpha must be a number in \[0, 1\).*got \[0.7\]"),
        (lambda: tamis.BLS(tamis.InfoBatch(DATA, 3), alpha=[0.7]), r"BLS: alpha must be a number"),
        (
            lambda: tamis.Options(delta="a"),
            r"Options: delta must be a number in \[0, 1\], or None, got 'a'",
        ),
        (lambda: tamis.Options(target_prune="a"), "Options: target_prune must be a number"),
        (lambda: tamis.Options(time_limit="a"), "Options: time_limit must be a number"),
        (
            lambda: tamis.Options(labels=[0.5, 1.0]),
            "Options: labels must be whole numbers.*got float64; number the classes",
        ),
        (lambda: tamis.Options(labels=torch.ones(3)), "Options: labels must be whole.*float32"),
        (
            lambda: tamis.prune(bls(), "bls-infobatch", epochs=3),
            "Handler: dataset must be a data set, got <Handler: .*pass its data set",
        ),
        (
            lambda: tamis.SeTa(tamis.BLS(tamis.InfoBatch(DATA, 3)), 3),
            r"SeTa: dataset must be a data set, got BLS.*\.proxy\(\)",
        ),
        (
            lambda: tamis.InfoBatch(DataLoader(DATA), 3),
            "got a DataLoader; pass its data set",
        ),
        (
            lambda: tamis.InfoBatch(DATA, 10, 0.5),
            r"must be given by name, got 0.5.*InfoBatch\(train_set, epochs=..., prune_ratio=0.5\)",
        ),
        (
            lambda: tamis.InfoBatch(DATA, 10, 0.5, 0.875),
            r"prune_ratio=0.5, options=tamis.Options\(delta=0.875\)\)",
        ),
        (lambda: tamis.SeTa(DATA, 10, 0.1, 5), r"prune_ratio=0.1, groups=5\)"),
        (lambda: bls(options={"seed": 1}), r"options must be tamis.Options\(...\), got \{'seed'"),
        (lambda: bls(seed=3), r"pass options=tamis.Options\(seed=...\)"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    "wrong, hint",
    [
        ("num_observation", "did you mean num_observations?"),
        ("prunedshare", "did you mean pruned_share?"),
        ("updates", "did you mean update?"),
        ("nothing_of_the_kind", "Handler has no attribute nothing_of_the_kind$"),
    ],
)
def test_a_typo_in_an_attribute_gets_a_hint(wrong, hint):
    with pytest.raises(AttributeError, match=hint.replace("?", r"\?")):
        getattr(bls(), wrong)


@pytest.mark.parametrize("name", ["loader", "update", "sampler", "epoch"])
def test_a_method_without_its_proxy_says_so(name):
    wrapped = tamis.BLS(tamis.InfoBatch(DATA, epochs=3))
    with pytest.raises(AttributeError, match=rf"BLS has no attribute {name}.*BLS\(...\).proxy\(\)"):
        getattr(wrapped, name)


HIDE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
"""


def run_without(packages, script):
    """What a script prints where these packages are missing."""
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", HIDE.format(packages=packages) + script]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_without_torch_the_extra_is_named():
    script = (
        "import tamis\n"
        "tamis.Pruner(10, 2)\n"
        "for name in ('BLS', 'prune', 'Stream'):\n"
        "    try:\n"
        "        getattr(tamis, name)\n"
        "    except ImportError as error:\n"
        "        assert 'pip install tamis[torch]' in str(error), error\n"
        "    else:\n"
        "        raise SystemExit(name)\n"
    )
    run_without(["torch"], script)


@pytest.mark.parametrize(
    ("module", "missing", "message"),
    [
        ("scoring", ["torch"], "needs PyTorch: pip install tamis[torch]"),
        ("integrations.hf", ["torch"], "needs PyTorch: pip install tamis[hf]"),
        ("integrations.accelerate", ["accelerate"], "needs accelerate: pip install tamis[accelerate]"),
        ("integrations.grain", ["grain"], "needs grain: pip install tamis[grain]"),
        ("integrations.keras", ["keras"], "needs keras: pip install tamis[keras]"),
        ("integrations.lightning", ["lightning", "pytorch_lightning"], "needs lightning: pip install tamis[lightning]"),
        ("integrations.timm", ["timm"], "needs timm: pip install tamis[timm]"),
        ("integrations.torchdata", ["torchdata"], "needs torchdata: pip install tamis[torchdata]"),
    ],
)
def test_a_module_whose_packages_are_missing_names_the_extra(module, missing, message):
    script = f"try:\n    import tamis.{module}\nexcept ImportError as error:\n    print(error)\n"
    assert run_without(missing, script) == f"tamis.{module} {message}\n"


def test_the_methods_are_listed_without_torch():
    found = run_without(["torch"], "import tamis; print(*tamis.methods())")
    assert found.split() == list(tamis.methods())


def test_plain_pytest_from_the_root_collects_every_file():
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPOSITORY)
    assert result.returncode == 0, result.stdout + result.stderr
    for path in REPOSITORY.glob("python/tests/test_*.py"):
        assert f"{path.relative_to(REPOSITORY)}::" in result.stdout
