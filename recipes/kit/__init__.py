"""What the recipes share: assets, readers, engines, metrics and the folder of a run. No training loop."""
