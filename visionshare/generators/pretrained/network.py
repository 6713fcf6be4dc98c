"""A network in ONNX, cut at the places whose activations are asked for, and run by onnxruntime."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.codegen.onnx_graph import require_onnx
from visionshare.errors import ExportError, InputError

_LARGEST = 512 << 20
_PLANE = 4
# Enlarging a picture lowers the error even of photographs of 32 pixels, and takes three times as
# long: for few of them.
_SIDE, _LARGE_SIDE = 128, 224
_FEW_ENLARGED = 3000


class NetworkPart(NamedTuple):
    """The part of a network that some places need, with their pooled activations as outputs."""

    content: bytes
    widths: tuple[int, ...]
    macs: int
    parameters: int


def _parsed(content: bytes) -> Any:
    """Return a network that holds all of its numbers and runs nothing but standard operators."""
    onnx = require_onnx()
    if len(content) > _LARGEST:
        raise InputError("network", f"{len(content)} bytes", f"at most {_LARGEST} bytes")
    try:
        model = onnx.load_from_string(content)
    except Exception:
        raise InputError("network", "no ONNX", "a file of ONNX") from None
    graph = model.graph
    has_graphs = any(
        attribute.type in (attribute.GRAPH, attribute.GRAPHS)
        for node in graph.node
        for attribute in node.attribute
    )
    custom = any(node.domain not in ("", "ai.onnx") for node in graph.node)
    # Numbers elsewhere would be read from wherever the file says.
    tensors = [*graph.initializer, *(a.t for node in graph.node for a in node.attribute)]
    if has_graphs or custom or len(model.functions):
        raise InputError("network", "functions or other operators", "standard operators alone")
    if any(t.external_data or t.data_location == t.EXTERNAL for t in tensors):
        raise InputError("network", "numbers in other files", "a file that holds its numbers")
    known = {tensor.name for tensor in graph.initializer}
    if len([one for one in graph.input if one.name not in known]) != 1:
        raise InputError("network", "several inputs", "a network of one input")
    return model


def proposed_side(n_pictures: int) -> int:
    """Return the side at which a network sees pictures, of which so many train."""
    return _LARGE_SIDE if n_pictures <= _FEW_ENLARGED else _SIDE


def proposed_places(path: str | os.PathLike[str], size: int = 128) -> dict[str, Any]:
    """Return parameters for a network in a file: the last maps of each size, and what they need."""
    onnx = require_onnx()
    accepted = "an ONNX file of one input (n, 3, H, W) or (n, 1, H, W)"
    try:
        model = _parsed(Path(path).read_bytes())
    except OSError:
        raise InputError("network", os.fspath(path), f"{accepted} that can be read") from None
    # 1) the input
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    (given,) = [one for one in graph.input if one.name not in constants]
    sides = [d.dim_value for d in given.type.tensor_type.shape.dim]
    if len(sides) != _PLANE or sides[1] not in (1, 3) or sides[2] != sides[3]:
        raise InputError("network", f"{os.fspath(path)}: input {sides}", accepted)
    side = sides[2] or size
    kind = onnx.TensorProto.FLOAT
    own = onnx.helper.make_tensor_value_info(given.name, kind, [1, sides[1], side, side])
    given.CopyFrom(own)
    # 2) the last maps of each size, and what follows them
    whole = onnx.shape_inference.infer_shapes(model, data_prop=True)
    shapes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in [*whole.graph.value_info, *whole.graph.output]
    }
    last: dict[tuple[int, ...], str] = {}
    for name in (name for node in graph.node for name in node.output):
        shape = shapes.get(name, [])
        if len(shape) == _PLANE and all(shape[1:]) and min(shape[2:]) > 1:
            last[tuple(shape[2:])] = name
    if not last:
        raise InputError("network", os.fspath(path), f"{accepted} that computes maps")
    color = [127.0] * sides[1], [128.0] * sides[1]
    places = list(last.values())
    return {"network": os.fspath(path), "places": places, "size": side,
            "mean": color[0], "std": color[1]}  # fmt: skip


@lru_cache(maxsize=12)
def cut(content: bytes, places: tuple[str, ...], shape: tuple[int, ...]) -> NetworkPart:
    """Return the part of a network up to the deepest of some places, and what it costs."""
    onnx = require_onnx()
    model = _parsed(content)
    graph = model.graph
    # 1) walk back from the places
    maker = {name: node for node in graph.node for name in node.output}
    known = [name for node in graph.node for name in node.output]
    for place in places:
        if place not in maker:
            few = ", ".join(known[-8:])
            raise InputError("places", place, f"names of tensors of the network, such as {few}")
    waiting = list(places)
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [one for one in (maker[name].input if name in maker else ()) if one]
    nodes = [node for node in graph.node if needed.intersection(node.output)]
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    names = {tensor.name for tensor in graph.initializer}
    (given,) = [one for one in graph.input if one.name not in names]
    # 2) shapes for pictures of this size
    helper = onnx.helper
    own = helper.make_tensor_value_info(given.name, onnx.TensorProto.FLOAT, [1, *shape])
    outputs = [helper.make_empty_tensor_value_info(place) for place in places]
    part = helper.make_graph(nodes, "network", [own], outputs, constants)
    kept = {"opset_imports": list(model.opset_import), "ir_version": model.ir_version}
    try:
        whole = onnx.shape_inference.infer_shapes(helper.make_model(part, **kept), data_prop=True)
    except Exception as error:
        raise InputError("network", str(error)[:200], f"a network of inputs {shape}") from None
    shapes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in [*whole.graph.value_info, *whole.graph.output, *whole.graph.input]
    }
    sizes = {tensor.name: list(tensor.dims) for tensor in constants}
    for node in nodes:
        _pad_explicitly(node, {**shapes, **sizes})
    # 3) means of planes
    widths, pooled = [], []
    for place in places:
        sides = shapes.get(place, [])
        if len(sides) not in (2, _PLANE) or not all(sides[1:]):
            raise InputError("places", f"{place} of shape {sides}", "maps (n, C, H, W), or (n, C)")
        widths.append(int(sides[1]))
        last = place
        if len(sides) == _PLANE:
            last = f"{place}/mean"
            nodes.append(helper.make_node("GlobalAveragePool", [place], [last]))
        nodes.append(helper.make_node("Flatten", [last], [f"{place}/column"]))
        pooled.append(
            helper.make_tensor_value_info(
                f"{place}/column", onnx.TensorProto.FLOAT, [1, int(sides[1])]
            )
        )
    final = helper.make_graph(nodes, "network", [own], pooled, constants)
    written = helper.make_model(final, **kept).SerializeToString(deterministic=True)
    macs = sum(_macs(node, {**shapes, **sizes}) for node in nodes)
    return NetworkPart(
        written, tuple(widths), macs, sum(math.prod(tensor.dims) for tensor in constants)
    )


def _pad_explicitly(node: Any, shapes: dict[str, list[int]]) -> None:
    """State how many zeros a convolution pads with: OpenCV takes SAME_UPPER to mean others."""
    values = {one.name: require_onnx().helper.get_attribute_value(one) for one in node.attribute}
    way = values.get("auto_pad", b"NOTSET")
    if node.op_type != "Conv" or way not in (b"SAME_UPPER", b"SAME_LOWER"):
        return
    sides = shapes[node.input[0]][2:]
    kernel = shapes[node.input[1]][2:]
    strides = values.get("strides", [1] * len(sides))
    steps = values.get("dilations", [1] * len(sides))
    totals = [
        max(0, (-(-side // stride) - 1) * stride + (window - 1) * step + 1 - side)
        for side, window, stride, step in zip(sides, kernel, strides, steps, strict=True)
    ]
    few = [total // 2 for total in totals]
    many = [total - half for total, half in zip(totals, few, strict=True)]
    pads = few + many if way == b"SAME_UPPER" else many + few
    kept = [one for one in node.attribute if one.name != "auto_pad"]
    del node.attribute[:]
    node.attribute.extend([*kept, require_onnx().helper.make_attribute("pads", pads)])


def _macs(node: Any, shapes: dict[str, list[int]]) -> int:
    """Return the multiply-accumulates of an operator; only sums of products count."""
    if node.op_type == "Conv":
        return math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])
    if node.op_type in ("Gemm", "MatMul"):
        out = math.prod(shapes[node.output[0]])
        transposed = any(a.name == "transA" and a.i for a in node.attribute)
        return out * int(shapes[node.input[0]][0 if transposed else -1])
    return 0


@lru_cache(maxsize=8)
def _session(content: bytes) -> Any:
    """Return what runs a network, by one thread: its bits do not depend on others."""
    try:
        import onnxruntime
    except ImportError:
        message = "onnxruntime is not installed; first: pip install 'visionshare[pretrained]'"
        raise ExportError(message) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError("network", str(error)[:200], "a network that onnxruntime runs") from None


def pooled(content: bytes, picture: np.ndarray, wanted: Sequence[str]) -> np.ndarray:
    """Return the pooled activations of the places of one picture (1, C, H, W), side by side."""
    kept = _kept
    key = None
    if kept is not None:
        key = (content, tuple(wanted), hashlib.blake2b(picture.data, digest_size=16).digest())
        if key in kept:
            return kept[key]
    runs = _session(content)
    columns = runs.run(
        [f"{place}/column" for place in wanted], {runs.get_inputs()[0].name: picture}
    )
    values: np.ndarray = np.concatenate(columns, axis=1)[0]
    if kept is not None and len(kept) * values.nbytes < _MOST_KEPT:
        kept[key] = values
    return values


def activation_maps(content: bytes, picture: np.ndarray, wanted: Sequence[str]) -> list[np.ndarray]:
    """Return the activations of each place before pooling, (1, C, H, W) or (1, C), of a picture."""
    runs = _session(_unpooled(content, tuple(wanted)))
    return runs.run(list(wanted), {runs.get_inputs()[0].name: picture})


@lru_cache(maxsize=4)
def _unpooled(content: bytes, places: tuple[str, ...]) -> bytes:
    """Return a network whose outputs are these places themselves."""
    onnx = require_onnx()
    model = onnx.load_from_string(content)
    del model.graph.output[:]
    kind = onnx.TensorProto.FLOAT
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(place, kind, None) for place in places
    )
    return model.SerializeToString(deterministic=True)


# Activations by network, places and picture, while a block of :func:`kept_activations` runs.
_kept: dict[Any, np.ndarray] | None = None
_MOST_KEPT = 128 << 20


@contextmanager
def kept_activations() -> Iterator[None]:
    """Keep activations while a ``with`` block runs: a search sees the same pictures many times."""
    global _kept
    before = _kept
    _kept = {} if before is None else before
    try:
        yield
    finally:
        _kept = before
