"""The commit that a run records."""

import subprocess

import pytest

from otprop.benchmark import checkout, records
from otprop.benchmark.run import Settings, run


def git(folder, *arguments):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *arguments]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A checkout with a package in it, and something else beside."""
    package = tmp_path / "repository" / "package"
    package.mkdir(parents=True)
    (package / "code.py").write_text("1\n")
    (package.parent / "results").write_text("0\n")
    git(package.parent, "init", "--quiet")
    git(package.parent, "add", ".")
    git(package.parent, "commit", "--quiet", "--message", "One")
    return package.parent


def test_the_commit_is_the_one_checked_out(repository):
    assert checkout.commit(repository / "package") == git(repository, "rev-parse", "HEAD")


def test_only_changes_of_the_package_make_it_another(repository):
    head = git(repository, "rev-parse", "HEAD")
    (repository / "results").write_text("changed\n")
    assert checkout.commit(repository / "package") == head
    (repository / "package" / "more.py").write_text("2\n")
    assert checkout.commit(repository / "package") == f"{head}-dirty"


def test_outside_a_checkout_there_is_none(tmp_path):
    assert checkout.commit(tmp_path) is None
    assert checkout.commit(tmp_path / "missing") is None


def test_a_package_installed_inside_another_checkout_has_none(repository):
    (repository / ".gitignore").write_text("installed\n")
    installed = repository / "installed"
    installed.mkdir()
    (installed / "code.py").write_text("1\n")
    assert checkout.commit(installed) is None


def test_a_checkout_without_a_commit_has_none(repository):
    git(repository, "update-ref", "-d", "HEAD")
    assert checkout.commit(repository / "package") is None


def test_without_git_there_is_none(repository, monkeypatch):
    monkeypatch.setattr(checkout.shutil, "which", lambda _name: None)
    assert checkout.commit(repository / "package") is None


def test_a_run_records_the_commit(tmp_path, monkeypatch):
    for commit in ("abc", None):
        monkeypatch.setattr(checkout, "commit", lambda found=commit: found)
        run([], Settings(tmp_path), lambda _record: None)
    one, other = records.read_lines(tmp_path, "environment")
    assert one["commit"] == "abc"
    assert other["commit"] is None
    assert one["id"] != other["id"]
