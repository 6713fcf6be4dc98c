"""Files: durable writes, storage back ends, uploads, tensor files, fingerprints, bundled data."""
