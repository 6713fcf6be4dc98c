"""Other classifiers beside ours: training, error and speed on the same cores, in one run.

    python -m benchmarks.peers --data DIR --ours out/mnist/classifier.safetensors

A peer is a file of this folder with a function ``learn`` and an entry of PEERS. Those whose
packages are not installed are left out, and the page says so.
"""

from benchmarks.peers.running import main

if __name__ == "__main__":
    main()
