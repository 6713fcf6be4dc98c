"""What classifiers take on small cores: errors, flash, memory and instructions, ours and peers.

    python -m benchmarks.edge --data DIR --set mnist --ours out/mnist-quick/classifier.safetensors \
        --json docs/results/edge/mnist.json --out docs/results

Ours are exported anew, in whole numbers; of emlearn trees are trained here. C of others, such as
BitNetMCU or TinyMaix, is brought: --peer-c DIR, a folder with peer.toml, see brought.py. Errors are
those of all test images, from the same C compiled for this machine; a core emulates --count images.
"""

from benchmarks.edge.running import main

if __name__ == "__main__":
    main()
