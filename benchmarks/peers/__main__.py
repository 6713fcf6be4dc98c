"""Other classifiers beside ours: training, error and speed on the same cores, in one run.

    python -m benchmarks.peers --data DIR --set mnist --seconds 60 --seeds 3 \
        --ours out/mnist/classifier.safetensors --json out/peers/mnist.json

A peer is a file of this folder with a function ``learn`` and an entry of PEERS. Those whose
packages are not installed are left out, and the page says so: ``pip install -e .[benchmarks]``.
The Tsetlin machine's, tmu, needs NumPy 1, and so an environment of its own: ``pip install -e . tmu
kymatio "numpy<2"``. difflogic's, of logic gates, need a CUDA GPU, to compile and to learn, and the
seconds of --seconds are wall-clock for them: ``pip install --no-build-isolation difflogic``. With
PyTorch 2 its kernels compile with ``x.scalar_type()`` in place of ``x.type()``.
What a stopped run kept in its file of JSON is not done again; --seeds may grow.
"""

from benchmarks.peers.running import main

if __name__ == "__main__":
    main()
