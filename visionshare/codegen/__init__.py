"""What writes C and ONNX: text, tables, templates, units and graphs. It knows no feature family."""
