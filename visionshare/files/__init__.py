"""Files: durable writes, storage back ends, tensor files, fingerprints, bundled data."""
