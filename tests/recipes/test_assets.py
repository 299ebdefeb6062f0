"""Data are used only if they are what the recipe was written for."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

from recipes.kit import assets


@pytest.mark.parametrize("name", assets.ASSETS)
def test_a_missing_asset_names_its_package_and_the_cure(name, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        assets.find(name, tmp_path)
    assert assets.ASSETS[name].package in str(error.value)
    assert "scripts/fetch_data.sh --recipes" in str(error.value)


def test_an_asset_of_another_version_is_refused(tmp_path):
    (tmp_path / "cutouts").mkdir()
    (tmp_path / "cutouts" / "cat.png").write_bytes(b"something else")
    with pytest.raises(RuntimeError, match="tuxpaint-stamps-default 2022.06.04-1.*SHA-256"):
        assets.find("cutouts", tmp_path)


def test_the_digest_is_that_of_the_fetching_script(tmp_path):
    for name in ("b.txt", "sub folder/a.txt", "B.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    script = (ROOT / "scripts" / "fetch_data.sh").read_text()
    function = re.search(r"^digest\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL).group(0)
    call = ["sh", "-c", f'{function}\ndigest "$1"', "sh", str(tmp_path)]
    shown = subprocess.run(call, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == assets.digest(tmp_path)


def test_script_and_recipes_expect_the_same_sums():
    script = (ROOT / "scripts" / "fetch_data.sh").read_text()
    for name in assets.ASSETS.keys() - {"mnist", "cifar10"}:  # whose files have sums of their own
        assert assets.ASSETS[name].digest in script, name


def test_a_file_is_whole_or_not_there_though_two_runs_make_it_at_once(tmp_path):
    path = tmp_path / "made.bin"
    both = "import pathlib, sys, time\nfrom recipes.kit import assets\nwith assets.written(pathlib.Path(sys.argv[1])) as file:\n"
    both += "    file.write(b'half')\n    file.flush()\n    print(flush=True)\n    sys.stdin.read()\n    file.write(b' and half')\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    runs = [subprocess.Popen([sys.executable, "-c", both, path], cwd=ROOT, **pipes) for _ in range(2)]
    for run in runs:
        run.stdout.readline()
    assert not path.exists()
    for run in runs:
        run.communicate()
        assert run.returncode == 0 and path.read_bytes() == b"half and half"
    with pytest.raises(KeyboardInterrupt), assets.written(tmp_path / "other.bin"):
        raise KeyboardInterrupt
    assert [file.name for file in tmp_path.iterdir()] == ["made.bin"]
