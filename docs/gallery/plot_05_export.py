"""
C and ONNX
==========

Write a classifier as C without dependencies, or as an ONNX model, and check that they agree.
"""

import matplotlib.pyplot as plt
import numpy as np

from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset
from visionshare.export import c_program, compile_classifier, onnx_program, run_onnx

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(train.images), train.images)
classifier = ShareBoost(rounds=30).fit(columns, train.labels).to_classifier(family)
expected = classifier.predict(test.images)

# %%
# The C is a header, a source, an example and a Makefile. It allocates nothing.

program = c_program(classifier, quantize="int8")
print(sorted(program.files), program.ram, "bytes to work in")
print("\n".join(program.files["classifier.h"].splitlines()[:20]))

# %%
# The same C, compiled and called from Python. Tables of 8 bits are a quarter of the size, and change few labels.

compiled = compile_classifier(classifier, quantize="int8")
same = (compiled.predict(test.images) == expected).mean()
print(f"int8: {same:.2%} of the labels agree with Python")
assert same > 0.97

# %%
# ONNX computes the same scores, up to rounding.

model = onnx_program(classifier)
result = run_onnx(model, test.images)
difference = np.abs(result.scores - classifier.decision_function(test.images)).max()
print(f"ONNX: {len(model.content):,} bytes, scores differ by {difference:.1e} at most")
assert difference < 1e-3
assert (result.labels == expected).all()

sizes = {
    "safetensors": classifier.nbytes,
    "ONNX": len(model.content),
}
plt.figure(figsize=(6, 2))
plt.barh(list(sizes), [size / 1024 for size in sizes.values()])
plt.xlabel("KiB")
plt.tight_layout()
plt.show()
