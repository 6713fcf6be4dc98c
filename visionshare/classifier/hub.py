"""Classifiers to and from a hub of models: one data-only file and a model card."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visionshare.classifier import CompactClassifier, model_card
from visionshare.errors import HubError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

__all__ = ["from_hub", "push_to_hub"]

_FILE = "classifier.safetensors"
_CARD = "README.md"


def push_to_hub(
    classifier: CompactClassifier,
    repo_id: str,
    *,
    figures: Mapping[str, Any] | None = None,
    license: str | None = None,
    private: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Upload a classifier and its model card in one commit; make the repository if there is none.

    Parameters
    ----------
    classifier : CompactClassifier
    repo_id : str
        ``OWNER/NAME``.
    figures : mapping, optional
        What was measured, see :func:`visionshare.classifier.model_card`.
    license : str, optional
        Of the classifier, such as ``"bsd-3-clause"``.
    private : bool, default False
        Of a repository that is made.
    token : str, optional
        That of the hub's own login when omitted.
    endpoint : str, optional
        Address of the hub; that of huggingface-hub when omitted.

    Returns
    -------
    str
        Id of the commit.

    Raises
    ------
    HubError
        If huggingface-hub is not installed, or the hub refuses or cannot be reached.

    Examples
    --------
    >>> from visionshare import load
    >>> classifier = load("out/digits/classifier.safetensors")  # doctest: +SKIP
    >>> push_to_hub(classifier, "somebody/digits")  # doctest: +SKIP
    '0f6c…'
    """
    api = _api(endpoint, token)
    name = repo_id.rpartition("/")[2]
    card = model_card(classifier, name, figures, license, _FILE)
    with tempfile.TemporaryDirectory() as folder, _refusals(repo_id):
        classifier.save(Path(folder) / _FILE)
        (Path(folder) / _CARD).write_text(card, encoding="utf-8")
        api.create_repo(repo_id, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo_id, folder_path=folder, commit_message="Upload of visionshare"
        )
    return str(commit.oid)


def from_hub(
    repo_id: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> CompactClassifier:
    """Download a classifier, or take it from the hub's cache on this machine.

    Parameters
    ----------
    repo_id : str
        ``OWNER/NAME``.
    revision : str, optional
        A commit, branch or tag; the newest commit when omitted. A commit's id pins the file.
    token : str, optional
        That of the hub's own login when omitted.
    endpoint : str, optional
        Address of the hub; that of huggingface-hub when omitted.

    Raises
    ------
    HubError
        If huggingface-hub is not installed, there is no such file, or the hub cannot be reached.
    ClassifierFileError
        If the file is not a classifier.

    Examples
    --------
    >>> from_hub("somebody/digits", revision="0f6c")  # doctest: +SKIP
    <CompactClassifier: 10 classes, 60 features of the family 'patches'>
    """
    api = _api(endpoint, token)
    with _refusals(repo_id):
        path = api.hf_hub_download(repo_id, _FILE, revision=revision)
    return CompactClassifier.load(path)


def _api(endpoint: str | None, token: str | None) -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        message = "the package huggingface-hub is not installed: pip install 'visionshare[hub]'"
        raise HubError(message) from None
    return HfApi(endpoint=endpoint, token=token, library_name="visionshare")


@contextmanager
def _refusals(repo_id: str) -> Iterator[None]:
    """Turn what the hub's client raises into one error that names the repository."""
    from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError

    try:
        yield
    except (HTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        reason = str(error).strip().splitlines()[0]
        raise HubError(f"{repo_id}: {reason}") from error
