"""What the library imports is declared in pyproject.toml, and what is declared is imported."""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Modules that are named otherwise than their package.
PACKAGES = {
    "PIL": "pillow", "cv2": "opencv-python-headless", "fontTools": "fonttools",
    "elftools": "pyelftools", "pydantic_core": "pydantic", "skimage": "scikit-image",
    "sklearn": "scikit-learn",
}  # fmt: skip
# Imported by starlette, for forms; run as a program; imported by fsspec; by tifffile.
INDIRECT = {"python-multipart", "ziglang", "s3fs", "imagecodecs"}


def _declared():
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    # onnxruntime runs exported models where it happens to be installed.
    lines = [
        *project["dependencies"],
        *extras["onnx"],
        *extras["serve"],
        *extras["ocrmypdf"],
        *extras["dask"],
        *extras["storage"],
        *extras["zarr"],
        *extras["tiff"],
        *extras["tables"],
        *extras["parquet"],
        *extras["edge"],
        *extras["heic"],
        *extras["pdf"],
        *extras["tflite"],
        "onnxruntime",
    ]
    return {re.match(r"[\w-]+", line)[0].lower() for line in lines}


def _imported():
    for path in (ROOT / "visionshare").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            else:
                continue
            yield from (name.split(".")[0] for name in names)


def test_imports_and_dependencies_are_the_same():
    modules = set(_imported()) - sys.stdlib_module_names - {"visionshare", "tomllib"}
    packages = {PACKAGES.get(name, name.lower().replace("_", "-")) for name in modules}
    assert packages - _declared() == set(), "imported, not declared"
    assert _declared() - packages - INDIRECT == set(), "declared, not imported"
