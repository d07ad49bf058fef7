"""What the documentation shows runs, and says what it gives."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from otprop import estimator
from otprop.transport import solver

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("module", [estimator, solver])
def test_docstring_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_ten_lines_of_the_readme():
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[1]
    names = {}
    exec(code, names)  # noqa: S102 - our own
    model, known = names["model"], np.array(names["y"]) != -1
    assert (model.transduction_ == names["species"])[~known].mean() > 0.8
    assert (model.round_ == 0).sum() == known.sum()


def test_links_of_the_documentation_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert link.startswith("https://") or (page.parent / link).exists(), (page.name, link)
