"""Classifiers to and from a hub: a small server on this machine answers as the hub does."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import yaml

from visionshare import CompactClassifier, Pixels
from visionshare.classifier import from_hub, push_to_hub
from visionshare.errors import ClassifierFileError, HubError

pytest.importorskip("huggingface_hub")


class Hub(ThreadingHTTPServer):
    """Repositories: the files of each, by commit; the last commit is the newest."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.repositories: dict[str, dict[str, dict[str, bytes]]] = {}
        self.tokens: list[str | None] = []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def files(self, repo, revision):
        commits = self.repositories.get(repo, {})
        if revision == "main":
            revision = list(commits)[-1] if commits else None
        return revision, commits.get(revision)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _answer(self, status, value=b"", **headers):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.tokens.append(self.headers.get("Authorization"))
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts == ["api", "repos", "create"]:
            given = json.loads(body)
            name = "/".join(filter(None, [given.get("organization", "somebody"), given["name"]]))
            self.server.repositories.setdefault(name, {})
            return self._answer(200, {"url": f"{self.server.address}/{name}", "name": name})
        if parts == ["api", "validate-yaml"]:
            return self._answer(200, {"errors": [], "warnings": []})
        repo, action = "/".join(parts[2:4]), parts[4]
        if repo not in self.server.repositories:
            return self._answer(404, {"error": "none"}, X_Error_Code="RepoNotFound")
        if action == "preupload":
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for f in json.loads(body)["files"]
            ]
            return self._answer(200, {"files": files})
        assert action == "commit", self.path
        lines = [json.loads(line) for line in body.splitlines()]
        files = {
            line["value"]["path"]: base64.b64decode(line["value"]["content"])
            for line in lines
            if line["key"] == "file"
        }
        commit = hashlib.sha1(body).hexdigest()
        self.server.repositories[repo][commit] = files
        url = f"{self.server.address}/{repo}/commit/{commit}"
        return self._answer(200, {"success": True, "commitOid": commit, "commitUrl": url})

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            repo = "/".join(parts[2:4])
            commit, files = self.server.files(repo, parts[5] if len(parts) > 5 else "main")
            if files is None:
                return self._answer(404, {"error": "none"}, X_Error_Code="RepoNotFound")
            siblings = [{"rfilename": name} for name in files]
            return self._answer(200, {"id": repo, "sha": commit, "siblings": siblings})
        repo, revision, name = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
        commit, files = self.server.files(repo, revision)
        if repo not in self.server.repositories:
            return self._answer(404, X_Error_Code="RepoNotFound")
        if files is None:
            return self._answer(404, X_Error_Code="RevisionNotFound")
        if name not in files:
            return self._answer(404, X_Error_Code="EntryNotFound")
        etag = f'"{hashlib.sha1(files[name]).hexdigest()}"'
        return self._answer(200, files[name], ETag=etag, X_Repo_Commit=commit)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    from huggingface_hub import constants

    # Neither a login nor a cache of the machine's takes part.
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def classifier():
    family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    return CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))


def test_there_and_back(hub, classifier):
    figures = {"test_errors": 1, "test_images": 50}
    commit = push_to_hub(
        classifier, "somebody/letters", figures=figures, license="mit", token="hf_x",
        endpoint=hub.address,
    )  # fmt: skip
    files = hub.repositories["somebody/letters"][commit]
    assert sorted(files) == ["README.md", "classifier.safetensors"]
    assert set(hub.tokens) == {"Bearer hf_x"}
    card = files["README.md"].decode()
    assert yaml.safe_load(card.split("---")[1])["license"] == "mit"
    assert "2.00 %" in card
    same = from_hub("somebody/letters", endpoint=hub.address)
    assert np.array_equal(same.weights, classifier.weights)
    pinned = from_hub("somebody/letters", revision=commit, endpoint=hub.address)
    assert pinned.classes_.tolist() == ["a", "b"]


def test_refusals_are_one_error(hub, classifier):
    with pytest.raises(HubError, match="somebody/none"):
        from_hub("somebody/none", endpoint=hub.address)
    with pytest.raises(HubError, match="not a name"):
        from_hub("not a name", endpoint=hub.address)
    with pytest.raises(HubError, match="a/b/c"):
        push_to_hub(classifier, "a/b/c", endpoint=hub.address)
    push_to_hub(classifier, "somebody/letters", token="hf_x", endpoint=hub.address)
    with pytest.raises(HubError, match="letters"):
        from_hub("somebody/letters", revision="0" * 40, endpoint=hub.address)


def test_a_foreign_file_is_no_classifier(hub):
    hub.repositories["somebody/other"] = {"1" * 40: {"classifier.safetensors": b"\x80\x04pickle"}}
    with pytest.raises(ClassifierFileError):
        from_hub("somebody/other", endpoint=hub.address)
