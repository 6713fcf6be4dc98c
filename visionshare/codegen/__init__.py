"""What writes C and ONNX: text, tables, units and graphs. It knows no feature family."""
