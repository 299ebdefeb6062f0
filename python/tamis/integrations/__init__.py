"""One small module per training framework; each needs the package that it is named after.

docs/frameworks.md has a recipe for each.
"""
