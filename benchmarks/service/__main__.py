"""The service under load, beside a plain FastAPI echo on the same machine in the same run.

python -m benchmarks.service --json                # requests a second, against the echo
python -m benchmarks.service attacks --json        # /health while clients mean harm
python -m benchmarks.service lives --json          # 100 starts, 20 reloads, 20 killed workers
python -m benchmarks.service memory --json         # resident size over 100 000 requests
"""

from benchmarks.service.running import main

if __name__ == "__main__":
    main()
