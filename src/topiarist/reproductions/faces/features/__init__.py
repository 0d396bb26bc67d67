"""From photographs of faces to descriptors: detection, local phase quantisation, oriented gradients."""
